"""Faults of stopping: requests that are cut, commands that a shell hides from its signals."""

import json
import os
import re
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from service.settings import Settings
from tests.integration.demo import check_close, draw_tokens, expect
from tests.integration.doors import (
    ATTENTION,
    INFER,
    NPZ,
    SAFETENSORS,
    read_answer,
    write_npz,
    write_safetensors,
    write_v2_binary,
)
from tests.integration.server_process import (
    ServerProcess,
    find_free_port,
    launch,
    start_server,
    wait_for_port,
)

ROOT = Path(__file__).parents[2]
TIMEOUT_S = 60
DELAY_MS = 4000
LONG_S = 120
TENSORS = draw_tokens()
REQUESTS: dict[str, tuple[str, bytes, dict[str, str]]] = {
    "v2-binary": (INFER, *write_v2_binary(TENSORS, parameters={"weights": "none"})),
    "v1-npz": (ATTENTION, write_npz(TENSORS), {"Content-Type": NPZ}),
    "v1-safetensors": (ATTENTION, write_safetensors(TENSORS), {"Content-Type": SAFETENSORS}),
}


def begin(server: ServerProcess, door: str) -> socket.socket:
    """A request of which the server has begun to read the body, and half of it."""
    path, body, headers = REQUESTS[door]
    length = {"Content-Length": str(len(body)), "Expect": "100-continue", "Host": "x"}
    lines = [f"POST {path} HTTP/1.1", *(f"{n}: {text}" for n, text in (headers | length).items())]
    address = urlsplit(server.url)
    connection = socket.create_connection((address.hostname, address.port), TIMEOUT_S)
    connection.sendall("\r\n".join([*lines, "", ""]).encode())
    assert connection.recv(100).startswith(b"HTTP/1.1 100 ")
    connection.sendall(body[: len(body) // 2])
    return connection


def finish(connection: socket.socket, door: str) -> httpx.Response:
    """Send the other half, and read the answer until the server hangs up."""
    path, body, _ = REQUESTS[door]
    connection.sendall(body[len(body) // 2 :])
    answer = b"".join(iter(lambda: connection.recv(65536), b""))
    head, _, content = answer.partition(b"\r\n\r\n")
    status, *lines = head.decode("latin-1").split("\r\n")
    headers = [(name, text.strip()) for name, _, text in (line.partition(":") for line in lines)]
    request = httpx.Request("POST", f"http://x{path}")
    return httpx.Response(int(status.split()[1]), headers=headers, content=content, request=request)


def wait_until_refused(server: ServerProcess) -> None:
    """Knock until nobody listens any more."""
    address, deadline = urlsplit(server.url), time.monotonic() + TIMEOUT_S
    while True:
        assert time.monotonic() < deadline, "the server still listens"
        try:
            socket.create_connection((address.hostname, address.port), TIMEOUT_S).close()
        except ConnectionRefusedError:
            return
        except ConnectionResetError:  # it was about to stop
            continue


@pytest.mark.skipif("LIMELIGHT_TEST_URL" in os.environ, reason="a deployed server is tested")
@pytest.mark.parametrize("workers", ["1", "2"])
def test_requests_in_flight_at_every_door_are_answered_and_new_ones_refused(workers: str) -> None:
    """Kludex/uvicorn #1215, #668, #669, #1950; benoitc/gunicorn #2593; lsst-sqre/phalanx #5105."""
    doors = [*REQUESTS, *REQUESTS]
    arguments = ("--inference-threads", "1", "--workers", workers)
    with start_server(*arguments) as server, ExitStack() as stack:
        connections = [stack.enter_context(begin(server, door)) for door in doors]
        server.process.terminate()
        wait_until_refused(server)
        for door, connection in zip(doors, connections, strict=True):
            check_close(read_answer(finish(connection, door)), expect(TENSORS, weights="none"))
        assert server.process.wait(TIMEOUT_S) == 0


@contextmanager
def serve_and_drain(
    delay_ms: int, workers: str
) -> Iterator[tuple[subprocess.Popen[str], httpx.Client]]:
    """A server that is ready and will drain for a while, and a client of it."""
    port = find_free_port()
    arguments = ("--port", str(port), "--drain-delay-ms", str(delay_ms), "--workers", workers)
    with launch(*arguments) as process:
        wait_for_port(process, port)
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=TIMEOUT_S) as client:
            wait_for_readiness(client, 200)
            yield process, client


def wait_for_readiness(client: httpx.Client, status: int) -> None:
    """Ask until the server is ready, or is no longer."""
    deadline = time.monotonic() + TIMEOUT_S
    while client.get("/v2/health/ready").status_code != status:
        assert time.monotonic() < deadline, f"readiness does not become {status}"
        time.sleep(0.01)


@pytest.mark.skipif("LIMELIGHT_TEST_URL" in os.environ, reason="a deployed server is tested")
@pytest.mark.parametrize("workers", ["1", "2"])
def test_with_a_delay_all_requests_are_answered_while_readiness_is_gone(workers: str) -> None:
    """Rolling updates: who sends requests learns only after a while that he should not."""
    path, body, headers = REQUESTS["v2-binary"]
    statuses, faults, stop = list[int](), list[str](), threading.Event()

    def ask_on(url: httpx.URL) -> None:
        with httpx.Client(base_url=url, timeout=TIMEOUT_S) as own:
            while not stop.is_set():
                try:
                    response = own.post(path, content=body, headers=headers)
                    check_close(read_answer(response), expect(TENSORS, weights="none"))
                    statuses.append(response.status_code)
                except (AssertionError, httpx.HTTPError) as error:
                    faults.append(repr(error))

    with serve_and_drain(DELAY_MS, workers) as (process, client):
        threads = [threading.Thread(target=ask_on, args=(client.base_url,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        process.terminate()
        told_s = time.monotonic()
        wait_for_readiness(client, 503)
        unready = client.get("/v2/health/ready")
        assert unready.json() == {"error": "the server is not ready: draining"}
        while not (asked := client.get("/v2/health/live").headers.get_list("Connection")):
            assert time.monotonic() < told_s + DELAY_MS / 2000
        assert asked == ["close"]
        before = len(statuses)
        time.sleep(DELAY_MS / 4000)
        stop.set()
        for thread in threads:
            thread.join()
        assert client.get("/v2/health/live").status_code == 200
        assert process.wait(TIMEOUT_S) == 0
        assert time.monotonic() - told_s > DELAY_MS / 1000
    assert faults == []
    assert len(statuses) > before + 4
    assert set(statuses) == {200}


@pytest.mark.skipif("LIMELIGHT_TEST_URL" in os.environ, reason="a deployed server is tested")
@pytest.mark.parametrize(("sent", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_second_signal_ends_the_process_at_once(
    sent: signal.Signals, code: int, workers: str
) -> None:
    with serve_and_drain(1000 * LONG_S, workers) as (process, client):
        process.terminate()
        wait_for_readiness(client, 503)
        process.send_signal(sent)
        assert process.wait(LONG_S / 2) == code


def test_no_command_of_the_image_goes_through_a_shell() -> None:
    """A shell in between swallows SIGTERM (benoitc/gunicorn #2593; lsst-sqre/phalanx #5105)."""
    text = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    commands = re.findall(r"^\s*(?:HEALTHCHECK .*)?\b(?:CMD|ENTRYPOINT) (.*)$", text, re.MULTILINE)
    assert len(commands) == 6
    for command in commands:
        assert all(isinstance(word, str) for word in json.loads(command)), command


@pytest.mark.parametrize("file", sorted(ROOT.glob("docker-compose*.yml")), ids=lambda f: f.name)
def test_no_command_of_a_compose_file_goes_through_a_shell(file: Path) -> None:
    """As text it would; as a list it does not (lsst-sqre/phalanx #5105)."""
    commands = re.findall(r"^ *(?:command|entrypoint):.*\n.*", file.read_text(), re.MULTILINE)
    assert all(re.search(r":(?: \[|\n +- )", command) for command in commands)


def test_the_engine_waits_longer_than_the_server_takes_to_stop() -> None:
    """Kludex/uvicorn #1950: what is in flight would be killed."""
    found = re.search(r"stop_grace_period: (\d+)s", (ROOT / "docker-compose.yml").read_text())
    assert found
    assert int(found[1]) > Settings.model_fields["shutdown_timeout_s"].default
