"""Faults of servers whose clients leave: work for nobody, requests that count for ever."""

import os
import re
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from tests.faults.process_facts import PROC, needs_linux
from tests.integration.demo import Arrays, check_close, draw_tokens, expect
from tests.integration.doors import INFER, ask, write_v2_binary
from tests.integration.server_process import ServerProcess, start_server
from tests.service.http.live_server import wait_until

MANY = 200
BLOCKERS = 4
TIMEOUT_S = 60
SMALL = draw_tokens(1, 2, 3)
LARGE = draw_tokens(1, 4000, 4000)


@pytest.fixture(name="server", scope="module")
def start_narrow() -> Iterator[ServerProcess]:
    """A server of one thread, where many may wait."""
    if "LIMELIGHT_TEST_URL" in os.environ:
        pytest.skip("a deployed server is tested")
    with start_server(
        LIMELIGHT_INFERENCE_THREADS="1", LIMELIGHT_MAX_QUEUE_REQUESTS=str(2 * MANY)
    ) as server:
        yield server


@pytest.fixture(name="client")
def open_client(server: ServerProcess) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, timeout=TIMEOUT_S) as client:
        yield client


def write(tensors: Arrays) -> bytes:
    """A whole request, head and body; the answer is the output alone."""
    body, headers = write_v2_binary(tensors, parameters={"weights": "none"})
    lines = [f"POST {INFER} HTTP/1.1", "Host: x", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {text}" for name, text in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


def send(server: ServerProcess, request: bytes, stack: ExitStack) -> socket.socket:
    address = urlsplit(server.url)
    connection = socket.create_connection((address.hostname, address.port), TIMEOUT_S)
    stack.enter_context(connection).sendall(request)
    return connection


def read_metric(client: httpx.Client, pattern: str) -> float:
    """The sum of the series whose name and labels match."""
    text = client.get("/metrics").text
    return sum(float(number) for number in re.findall(rf"^{pattern} (\S+)$", text, re.MULTILINE))


def count_waiting(client: httpx.Client) -> float:
    return read_metric(client, r"nv_inference_pending_request_count\{.*\}")


def count_runs(client: httpx.Client) -> float:
    return read_metric(client, r"nv_inference_exec_count\{.*\}")


def count_left(client: httpx.Client) -> float:
    return read_metric(client, r'limelight_requests_total\{.*outcome="left".*\}')


def test_what_waits_for_clients_that_left_is_never_computed(
    server: ServerProcess, client: httpx.Client
) -> None:
    """triton-inference-server/server #7077, #4818, #6920, #7532, #8030."""
    runs, left = count_runs(client), count_left(client)
    with ExitStack() as blocking, ExitStack() as leaving:
        blockers = [send(server, write(LARGE), blocking) for _ in range(BLOCKERS)]
        wait_until(lambda: count_waiting(client) == BLOCKERS - 1)
        for _ in range(MANY):
            send(server, write(SMALL), leaving)
        wait_until(lambda: count_waiting(client) >= MANY)
        leaving.close()
        wait_until(lambda: count_left(client) - left == MANY)
        assert count_waiting(client) < BLOCKERS
        for blocker in blockers:
            assert blocker.recv(12) == b"HTTP/1.1 200"
    assert count_runs(client) - runs <= BLOCKERS
    check_close(ask(client, "v2-binary", SMALL), expect(SMALL))


@needs_linux
@pytest.mark.parametrize("share", [0.01, 0.5, 0.99], ids=["head", "body", "nearly all of it"])
def test_clients_that_leave_while_they_send_leave_nothing_behind(
    server: ServerProcess, client: httpx.Client, share: float
) -> None:
    """Triton: CVE-2026-47476, CVE-2026-47479, CVE-2026-47482."""
    request = write(LARGE)
    client.get("/v2/health/live")
    files = count_files(server)
    with ExitStack() as leaving:
        for _ in range(MANY):
            send(server, request[: int(len(request) * share)], leaving)
        wait_until(lambda: count_files(server) == files + MANY)
    wait_until(lambda: count_files(server) == files)
    check_close(ask(client, "v2-binary", SMALL), expect(SMALL))


def test_clients_that_leave_while_theirs_is_computed_disturb_nobody(
    server: ServerProcess, client: httpx.Client
) -> None:
    """Triton: CVE-2025-23322, CVE-2025-33238."""
    right = expect(SMALL)
    for _ in range(5):
        with ExitStack() as leaving:
            send(server, write(LARGE), leaving)
        check_close(ask(client, "v2-binary", SMALL), right)
    assert count_waiting(client) == 0


def count_files(server: ServerProcess) -> int:
    """Files that the server has open, its connections among them."""
    return len(list(Path(PROC / str(server.process.pid) / "fd").iterdir()))
