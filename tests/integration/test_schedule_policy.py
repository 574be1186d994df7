"""Parameters that say how a request waits, that it waits so, and parameters that are reserved."""

import os
import re
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from tests.integration.demo import check_close, draw_tokens, expect
from tests.integration.doors import INFER, read_answer, write_v2_binary, write_v2_json
from tests.integration.server_process import start_server

TENSORS = draw_tokens()
TIMEOUT_S = 60
LARGE = draw_tokens(batch_size=8, query_length=2010, key_length=2000)
MANY = 16
WAITING = re.compile(r'nv_inference_pending_request_count{model="demo",version="1"} (\S+)\n')


def post(client: httpx.Client, **parameters: Any) -> httpx.Response:
    """A request with some parameters."""
    return client.post(INFER, json=write_v2_json(TENSORS, parameters=parameters))


@pytest.mark.parametrize(
    "parameters",
    [
        {"timeout": 0},
        {"timeout": 60_000_000},
        {"timeout": 2**63 - 1, "priority": 2**64 - 1},
        {"priority": 1},
        {"priority": 0, "headers": "x", "mine": 1},
        {"sequence_id": 0, "sequence_start": False, "sequence_end": False},
        {"sequence_id": ""},
    ],
    ids=str,
)
def test_a_request_is_answered_however_it_wants_to_wait(
    client: httpx.Client, parameters: dict[str, Any]
) -> None:
    check_close(read_answer(post(client, **parameters)), expect(TENSORS))


@pytest.mark.parametrize("value", [-1, 1.5, 1.0, True, "1", 2**63, 2**70])
def test_a_timeout_that_is_no_number_of_microseconds_is_400(
    client: httpx.Client, value: Any
) -> None:
    response = post(client, timeout=value)
    assert response.status_code == 400
    assert response.json()["error"].startswith("parameter 'timeout' is ")
    assert response.json()["error"].endswith(
        ", expected a whole number of microseconds from 0 to 9223372036854775807"
    )


@pytest.mark.parametrize("value", [-1, 0.0, False, "high", 2**64])
def test_a_priority_that_is_no_number_is_400(client: httpx.Client, value: Any) -> None:
    response = post(client, priority=value)
    assert response.status_code == 400
    assert response.json()["error"].endswith(
        ", expected a whole number from 0 to 18446744073709551615"
    )


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [("sequence_id", 7, "7"), ("sequence_id", "s", '"s"'), ("sequence_start", True, "true")],
)
def test_sequences_are_501(client: httpx.Client, name: str, value: Any, shown: str) -> None:
    response = post(client, **{name: value})
    text = (
        f"parameter '{name}' is {shown}, but sequences are not offered: every request is answered "
        "for itself; leave it out"
    )
    assert (response.status_code, response.json()) == (501, {"error": text})


def test_names_that_triton_reserves_are_400(client: httpx.Client) -> None:
    response = post(client, triton_enable_empty_final_response=True)
    text = (
        'parameter "triton_enable_empty_final_response" is reserved, as all that begin with '
        "triton_; leave it out"
    )
    assert (response.status_code, response.json()) == (400, {"error": text})


@pytest.fixture(scope="module", name="busy")
def serve_on_one_thread() -> Iterator[httpx.Client]:
    """A client of a server that computes one request after the other."""
    if "LIMELIGHT_TEST_URL" in os.environ:
        pytest.skip("a deployed server is tested")
    with (
        start_server(LIMELIGHT_INFERENCE_THREADS="1") as server,
        httpx.Client(base_url=server.url, timeout=TIMEOUT_S) as client,
    ):
        yield client


def count_waiting(client: httpx.Client) -> float:
    """How many requests are in the queue."""
    found = WAITING.search(client.get("/metrics").text)
    assert found
    return float(found[1])


@contextmanager
def occupy(client: httpx.Client, count: int) -> Iterator[ThreadPoolExecutor]:
    """Send large requests, and wait until half of them are in the queue.

    Not all: on a busy machine the first may be done before the last are sent.
    """
    body, headers = write_v2_binary(LARGE, parameters={"weights": "none"})
    deadline = time.monotonic() + TIMEOUT_S
    with ThreadPoolExecutor(count + 2) as threads:
        large = [threads.submit(client.post, INFER, content=body, headers=headers)
                 for _ in range(count)]  # fmt: skip
        while count_waiting(client) < count // 2:
            assert time.monotonic() < deadline
        yield threads
        assert [future.result().status_code for future in large] == [200] * count


def read_queue_ms(response: httpx.Response) -> float:
    """How long a request was in the queue."""
    assert response.status_code == 200, response.text
    found = re.match(r"queue;dur=([\d.]+)", response.headers["Server-Timing"])
    assert found
    return float(found[1])


def test_a_request_leaves_the_queue_when_its_time_is_over(busy: httpx.Client) -> None:
    with occupy(busy, MANY):
        response = post(busy, timeout=1000)
    assert response.status_code == 503
    assert response.headers["Retry-After"]
    assert "timeout" in response.json()["error"]
    check_close(read_answer(post(busy, timeout=TIMEOUT_S * 10**6)), expect(TENSORS))


def test_a_lower_number_goes_first_and_0_last(busy: httpx.Client) -> None:
    with occupy(busy, MANY) as threads:
        last: Future[httpx.Response] = threads.submit(post, busy, priority=0)
        first = read_queue_ms(post(busy, priority=1))
    assert first < read_queue_ms(last.result())
