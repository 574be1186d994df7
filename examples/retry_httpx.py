"""A client of /v1/attention that outlives a full queue, a restart and a lost connection.

    python examples/retry_httpx.py http://127.0.0.1:8000

To ask again is safe: an answer changes nothing on the server, and is the same bit for bit.
"""

import io
import sys
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import httpx
import numpy as np
from numpy.typing import NDArray
from tenacity import (
    RetryCallState,
    retry,
    retry_if_exception,
    stop_after_delay,
    wait_random_exponential,
)

GIVE_UP_AFTER_S = 60
BACKOFF = wait_random_exponential(multiplier=0.1, max=5)  # at random, or all clients come at once


def is_worth_another_try(error: BaseException) -> bool:
    """Whether the server was too busy or away; what it refused for a reason stays refused."""
    if isinstance(error, httpx.HTTPStatusError):
        return error.response.status_code == httpx.codes.SERVICE_UNAVAILABLE
    return isinstance(error, httpx.TransportError)


def wait_s(state: RetryCallState) -> float:
    """Seconds until the next try: longer each time, and never less than the server asks for."""
    error = state.outcome.exception() if state.outcome else None
    asked_s = read_retry_after_s(error) if isinstance(error, httpx.HTTPStatusError) else 0
    return asked_s + BACKOFF(state)


def read_retry_after_s(error: httpx.HTTPStatusError) -> float:
    """Seconds of the header ``Retry-After``, which is a number or a date (RFC 9110, 10.2.3)."""
    text = error.response.headers.get("Retry-After", "0")
    if text.isdecimal():
        return float(text)
    return max(0.0, (parsedate_to_datetime(text) - datetime.now(UTC)).total_seconds())


@retry(
    retry=retry_if_exception(is_worth_another_try),
    wait=wait_s,
    stop=stop_after_delay(GIVE_UP_AFTER_S),
    reraise=True,
)
def attend(client: httpx.Client, query: NDArray[np.float32]) -> NDArray[np.float32]:
    """The output [B, L, D] for a query [B, L, D], which stands in for key and value.

    Raises:
        httpx.HTTPError: if the request is refused, or the server stays away for a minute.
    """
    body = io.BytesIO()
    np.savez(body, query=query)
    answer = client.post(
        "/v1/attention", content=body.getvalue(), headers={"Content-Type": "application/x-npz"}
    ).raise_for_status()
    output: NDArray[np.float32] = np.load(io.BytesIO(answer.content))["output"]
    return output


def main(url: str) -> None:
    """Ask the demo model, whose d_model is 6."""
    query = np.random.default_rng(0).standard_normal((2, 4, 6), np.float32)
    with httpx.Client(base_url=url, timeout=60) as client:
        sys.stdout.write(f"{attend(client, query)}\n")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8000")
