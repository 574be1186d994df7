"""The clients of ``examples/`` against a server that refuses, goes away and comes back."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any, Final

import httpx
import numpy as np
import pytest

from examples import retry_httpx
from tests.integration.demo import check_close, draw_tokens, expect
from tests.integration.server_process import (
    ROOT,
    ServerProcess,
    find_free_port,
    start_server,
)

pytestmark = pytest.mark.skipif(
    "LIMELIGHT_TEST_URL" in os.environ, reason="a deployed server is tested"
)
QUERY: Final = draw_tokens()["query"]
ENOUGH_TRIES: Final = 6
EXAMPLE_TIMEOUT_S: Final = 120

Ask = Callable[..., tuple[Any, dict[str, Any]]]


@pytest.fixture(
    name="ask", params=["httpx", pytest.param("tritonclient", marks=pytest.mark.clients)]
)
def make_asking(request: pytest.FixtureRequest, port: int) -> Iterator[Ask]:
    """Ask by one of the examples, over one client, and return the output and its statistics."""
    attend: Any
    arguments: tuple[Any, ...]
    with ExitStack() as stack:
        if request.param == "httpx":
            client = stack.enter_context(httpx.Client(base_url=f"http://127.0.0.1:{port}"))
            attend, arguments = retry_httpx.attend, (client, QUERY)
        else:
            import tritonclient.http as triton

            from examples import retry_tritonclient

            client = triton.InferenceServerClient(f"127.0.0.1:{port}")
            stack.callback(client.close)
            attend, arguments = retry_tritonclient.attend, (client, "demo", QUERY)

        def ask(before_sleep: Callable[[Any], None]) -> tuple[Any, dict[str, Any]]:
            asking = attend.retry_with(before_sleep=before_sleep)
            output = asking(*arguments)
            return output, asking.statistics

        yield ask


@pytest.fixture(name="port")
def find_port() -> int:
    """A port that the server takes each time that it is started."""
    return find_free_port()


@contextmanager
def serve(port: int, **settings: Any) -> Iterator[ServerProcess]:
    """The demo on that port."""
    with start_server("--port", str(port), **settings) as server:
        yield server


def check(output: Any) -> None:
    """The output is right."""
    check_close({"output": output}, expect({"query": QUERY}, weights="none"))


def no_retry(state: Any) -> None:
    """Where the first try must succeed."""
    raise AssertionError(f"try {state.attempt_number} failed: {state.outcome.exception()!r}")


def test_a_full_server_is_asked_again_after_the_time_that_it_names(ask: Ask, port: int) -> None:
    with serve(port, LIMELIGHT_MAX_CONNECTIONS="1"):
        other = socket.create_connection(("127.0.0.1", port))
        output, statistics = ask(lambda _: other.close())
    check(output)
    assert 2 <= statistics["attempt_number"] <= ENOUGH_TRIES
    assert statistics["idle_for"] >= 1  # Retry-After of each


def test_a_server_that_is_not_there_yet_is_waited_for(ask: Ask, port: int) -> None:
    with ExitStack() as stack:

        def start(state: Any) -> None:
            if state.attempt_number == 2:
                stack.enter_context(serve(port))

        output, statistics = ask(start)
    check(output)
    assert statistics["attempt_number"] >= 3


def test_a_restart_between_two_requests_costs_neither(ask: Ask, port: int) -> None:
    with serve(port):
        first, _ = ask(no_retry)
    with serve(port):
        second, _ = ask(lambda _: None)
    check(first)
    assert np.array_equal(first, second)


def ask_once_and_kill(ask: Ask, port: int) -> None:
    """Ask a server that is then killed, connections and all."""
    with serve(port) as server:
        ask(no_retry)
        server.process.send_signal(signal.SIGKILL)
        server.process.wait()


def test_a_server_that_is_killed_between_two_requests_is_waited_for(ask: Ask, port: int) -> None:
    with pytest.raises(AssertionError, match="exit code -9"):
        ask_once_and_kill(ask, port)
    with ExitStack() as stack:

        def restart(state: Any) -> None:
            if state.attempt_number == 1:
                stack.enter_context(serve(port))

        output, statistics = ask(restart)
    check(output)
    assert statistics["attempt_number"] >= 2


def test_what_is_refused_for_a_reason_is_not_asked_again(port: int) -> None:
    with serve(port), httpx.Client(base_url=f"http://127.0.0.1:{port}") as client:
        asking = retry_httpx.attend.retry_with(before_sleep=no_retry)
        with pytest.raises(httpx.HTTPStatusError, match="400 Bad Request"):
            asking(client, QUERY[..., :5])


@pytest.mark.clients
def test_what_is_refused_for_a_reason_is_not_asked_again_by_tritonclient(port: int) -> None:
    import tritonclient.http as triton
    from tritonclient.utils import InferenceServerException

    from examples import retry_tritonclient

    with serve(port):
        client = triton.InferenceServerClient(f"127.0.0.1:{port}")
        asking = retry_tritonclient.attend.retry_with(before_sleep=no_retry)
        with pytest.raises(InferenceServerException, match="query"):
            asking(client, "demo", QUERY[..., :5])
        client.close()


@pytest.mark.parametrize(
    ("text", "least_s", "most_s"),
    [
        ("7", 7, 7),
        (format_datetime(datetime.now(UTC) + timedelta(hours=3), usegmt=True), 3600, 3 * 3600),
        (format_datetime(datetime.now(UTC) - timedelta(hours=3), usegmt=True), 0, 0),
    ],
    ids=["seconds", "date", "date that has passed"],
)
def test_the_time_to_wait_may_be_a_number_or_a_date(
    text: str, least_s: float, most_s: float
) -> None:
    request = httpx.Request("POST", "http://127.0.0.1/v1/attention")
    response = httpx.Response(503, headers={"Retry-After": text}, request=request)
    error = httpx.HTTPStatusError("", request=request, response=response)
    assert least_s <= retry_httpx.read_retry_after_s(error) <= most_s


@pytest.mark.parametrize(
    ("name", "scheme"),
    [("httpx", "http://"), pytest.param("tritonclient", "", marks=pytest.mark.clients)],
)
def test_an_example_runs_as_it_stands(name: str, scheme: str, server_url: str) -> None:
    address = scheme + server_url.partition("://")[2]
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / f"retry_{name}.py", address],
        check=False,
        capture_output=True,
        text=True,
        timeout=EXAMPLE_TIMEOUT_S,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("[[[")
