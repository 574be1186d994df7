"""Healthy and stuck: threads that do not come back turn readiness false, and end the process."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from service.watchdog import EXIT_CODE
from tests.faults.stuck_server import LARGE
from tests.integration.demo import L, S, check_close, draw_tokens, expect
from tests.integration.doors import INFER, read_v2, write_v2_binary
from tests.integration.server_process import (
    ROOT,
    ServerProcess,
    make_environment,
    wait_for_banner,
)

pytestmark = pytest.mark.skipif(
    "LIMELIGHT_TEST_URL" in os.environ, reason="a deployed server is tested"
)
TIMEOUT_S = 60
PAUSE_S = 0.02
LONG = 2000  # what is shorter is computed in the event loop, while nothing else is to be done
SETTINGS = {
    "LIMELIGHT_PORT": "0",
    "LIMELIGHT_INFERENCE_THREADS": "2",
    "LIMELIGHT_STUCK_TIMEOUT_S": "2",
    "LIMELIGHT_SHUTDOWN_TIMEOUT_S": "1",
}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    """A server that gets stuck when it is told to; see `stuck_server`."""
    log_file = tmp_path / "log"
    with (
        log_file.open("wb") as log,
        subprocess.Popen(
            [sys.executable, "-m", "tests.faults.stuck_server", str(tmp_path)],
            cwd=ROOT,
            env=make_environment(SETTINGS),
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        ) as process,
    ):
        try:
            yield wait_for_banner(process, log_file)
        finally:
            process.kill()


def ask(server: ServerProcess, rows: int, length: int = L) -> httpx.Response:
    """One inference."""
    tokens = draw_tokens(rows, length, S)
    body, headers = write_v2_binary(tokens, parameters={"binary_data_output": True})
    return httpx.post(f"{server.url}{INFER}", content=body, headers=headers, timeout=TIMEOUT_S)


def get_stuck(server: ServerProcess, statuses: list[int]) -> threading.Thread:
    """Let a thread of the server get stuck, with a client that waits for its answer."""

    def wait() -> None:
        with suppress(httpx.TransportError):
            statuses.append(ask(server, LARGE + 1, LONG).status_code)

    (server.log_file.parent / "run").touch()
    client = threading.Thread(target=wait)
    client.start()
    return client


def look(server: ServerProcess) -> tuple[int, str | None]:
    """Whether the server is ready, and if not, why."""
    response = httpx.get(f"{server.url}/v2/health/ready", timeout=TIMEOUT_S)
    return response.status_code, response.json().get("error")


def wait_until(is_so: Callable[[], bool]) -> None:
    """Look again and again."""
    deadline_s = time.monotonic() + TIMEOUT_S
    while not is_so():
        assert time.monotonic() < deadline_s, "it took too long"
        time.sleep(PAUSE_S)


def test_a_stuck_thread_is_not_ready_and_ready_again_when_it_comes_back(
    server: ServerProcess,
) -> None:
    statuses: list[int] = []
    client = get_stuck(server, statuses)
    wait_until(lambda: look(server)[0] == 503)
    assert look(server)[1] == (
        "the server is not ready: inference-0: stuck for more than 2 s (LIMELIGHT_STUCK_TIMEOUT_S)"
    )
    model = httpx.get(f"{server.url}/v2/models/demo/ready", timeout=TIMEOUT_S)
    assert model.status_code == 503
    assert httpx.get(f"{server.url}/v2/health/live", timeout=TIMEOUT_S).status_code == 200
    answer = ask(server, 3)  # by the other thread
    check_close(read_v2(answer), expect(draw_tokens(3)))
    (server.log_file.parent / "run").unlink()
    wait_until(lambda: look(server)[0] == 200)
    client.join(TIMEOUT_S)
    assert statuses == [200]
    assert server.stop() == 0


def test_a_thread_that_does_not_come_back_ends_the_process(server: ServerProcess) -> None:
    client = get_stuck(server, [])
    assert server.process.wait(TIMEOUT_S) == EXIT_CODE
    client.join(TIMEOUT_S)
    log = server.read_log()
    assert "thread inference-0 is stuck: it has computed for " in log
    assert "s: the process ends with exit code 70" in log


def test_an_event_loop_that_stands_still_ends_the_process(server: ServerProcess) -> None:
    (server.log_file.parent / "loop").touch()
    with pytest.raises(httpx.TransportError):
        look(server)
    assert server.process.wait(TIMEOUT_S) == EXIT_CODE
    assert "the event loop has stood still for 4 s: the process ends" in server.read_log()


def test_a_server_with_a_stuck_thread_stops_all_the_same(server: ServerProcess) -> None:
    statuses: list[int] = []
    client = get_stuck(server, statuses)
    wait_until(lambda: look(server)[0] == 503)
    server.process.terminate()
    assert server.process.wait(TIMEOUT_S) == EXIT_CODE
    client.join(TIMEOUT_S)
    assert statuses in ([503], [])
