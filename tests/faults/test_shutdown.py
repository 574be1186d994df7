"""Faults of stopping: requests that are cut, commands that a shell hides from its signals."""

import json
import os
import re
import socket
import time
from contextlib import ExitStack
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
from tests.integration.server_process import ServerProcess, start_server

ROOT = Path(__file__).parents[2]
TIMEOUT_S = 60
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
def test_requests_in_flight_at_every_door_are_answered_and_new_ones_refused() -> None:
    """Kludex/uvicorn #1215, #668, #669, #1950; benoitc/gunicorn #2593; lsst-sqre/phalanx #5105."""
    doors = [*REQUESTS, *REQUESTS]
    with start_server(LIMELIGHT_INFERENCE_THREADS="1") as server, ExitStack() as stack:
        connections = [stack.enter_context(begin(server, door)) for door in doors]
        server.process.terminate()
        wait_until_refused(server)
        for door, connection in zip(doors, connections, strict=True):
            check_close(read_answer(finish(connection, door)), expect(TENSORS, weights="none"))
        assert server.process.wait(TIMEOUT_S) == 0


def test_no_command_of_the_image_goes_through_a_shell() -> None:
    """A shell in between swallows SIGTERM (benoitc/gunicorn #2593; lsst-sqre/phalanx #5105)."""
    text = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    commands = re.findall(r"^\s*(?:HEALTHCHECK .*)?\b(?:CMD|ENTRYPOINT) (.*)$", text, re.MULTILINE)
    assert len(commands) == 4
    for command in commands:
        assert all(isinstance(word, str) for word in json.loads(command)), command


@pytest.mark.parametrize("file", sorted(ROOT.glob("docker-compose*.yml")), ids=lambda f: f.name)
def test_no_command_of_a_compose_file_goes_through_a_shell(file: Path) -> None:
    """As text it would; as a list it does not (lsst-sqre/phalanx #5105)."""
    commands = re.findall(r"^ *(?:command|entrypoint): *(.*)$", file.read_text(), re.MULTILINE)
    assert all(command.startswith("[") for command in commands)


def test_the_engine_waits_longer_than_the_server_takes_to_stop() -> None:
    """Kludex/uvicorn #1950: what is in flight would be killed."""
    found = re.search(r"stop_grace_period: (\d+)s", (ROOT / "docker-compose.yml").read_text())
    assert found
    assert int(found[1]) > Settings.model_fields["shutdown_timeout_s"].default
