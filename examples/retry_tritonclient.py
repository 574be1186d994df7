"""A client of /v2 that outlives a full queue, a restart and a lost connection.

    python examples/retry_tritonclient.py 127.0.0.1:8000

To ask again is safe: an answer changes nothing on the server, and is the same bit for bit.
"""

import sys
from http.client import HTTPException
from typing import Any

import numpy as np
import tritonclient.http as triton
from numpy.typing import NDArray
from tenacity import (
    retry,
    retry_if_exception,
    stop_after_delay,
    wait_fixed,
    wait_random_exponential,
)
from tritonclient.utils import InferenceServerException

GIVE_UP_AFTER_S = 60
# tritonclient keeps the headers of an error to itself. What `Retry-After` says is 1 s.
RETRY_AFTER_S = 1


def is_worth_another_try(error: BaseException) -> bool:
    """Whether the server was too busy or away; what it refused for a reason stays refused."""
    if isinstance(error, InferenceServerException):
        return bool(error.status() == "503")
    # No connection, one that was lost (OSError), or one that ended within an answer.
    return isinstance(error, OSError | HTTPException)


@retry(
    retry=retry_if_exception(is_worth_another_try),
    wait=wait_fixed(RETRY_AFTER_S) + wait_random_exponential(multiplier=0.1, max=5),
    stop=stop_after_delay(GIVE_UP_AFTER_S),
    reraise=True,
)
def attend(
    client: triton.InferenceServerClient, model: str, query: NDArray[np.float32]
) -> NDArray[np.float32]:
    """The output [B, L, D] for a query [B, L, D], which stands in for key and value.

    Raises:
        InferenceServerException: if the request is refused, or the server stays busy for a minute.
        OSError: if it stays away.
    """
    tensor = triton.InferInput("query", query.shape, "FP32")
    tensor.set_data_from_numpy(query)
    wanted = [triton.InferRequestedOutput("output")]
    answer: Any = client.infer(model, [tensor], outputs=wanted)
    output: NDArray[np.float32] = answer.as_numpy("output")
    return output


def main(address: str) -> None:
    """Ask the demo model, whose d_model is 6."""
    query = np.random.default_rng(0).standard_normal((2, 4, 6), np.float32)
    client = triton.InferenceServerClient(address)
    sys.stdout.write(f"{attend(client, 'demo', query)}\n")
    client.close()


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:8000")
