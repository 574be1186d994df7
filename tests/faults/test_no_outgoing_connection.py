"""Faults of calling home: a server that fetches what a request names, or tells others of itself.

TorchServe CVE-2023-43654, -2024-35198; LMDeploy CVE-2026-33626; onnxruntime's telemetry (pull
request 27379).
"""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import httpx
import pytest

from tests.faults.process_facts import needs_linux
from tests.faults.process_sockets import watch_sockets
from tests.integration.demo import draw_tokens
from tests.integration.doors import ATTENTION, DOORS, INFER, ask
from tests.integration.server_process import start_server

pytestmark = pytest.mark.skipif(
    "LIMELIGHT_TEST_URL" in os.environ, reason="a deployed server is tested"
)
PATIENCE_S: Final = 30
WATCHED: Final = Path(__file__).parent / "watched"
READS: Final = [
    "/", "/docs", "/docs/start.js", "/openapi.json", "/page/style.css", "/metrics", "/v2",
    "/v2/models", "/v2/models/demo", "/v2/models/demo/config", "/v2/models/demo/stats",
    "/v2/models/demo/ready", "/v2/health/ready", "/nothing",
]  # fmt: skip


def name_address(url: str) -> list[tuple[str, str, bytes]]:
    """Requests that name an address wherever a careless server might follow it."""
    text = url.encode()
    return [
        ("GET", f"/v2/models/{url}", b""),
        ("GET", f"/page/{url}", b""),
        ("POST", f"/v2/models/{url}/infer", b'{"inputs": []}'),
        ("POST", f"{ATTENTION}?model={url}", b'{"query": [[1, 2, 3, 4, 5, 6]]}'),
        ("POST", ATTENTION, b'{"query": "%b"}' % text),
        ("POST", INFER, b'{"inputs": [{"name": "query", "data": "%b"}]}' % text),
        ("POST", INFER, b'{"inputs": [], "parameters": {"url": "%b"}}' % text),
        ("POST", f"/v2/repository/models/{url}/load", b""),
        ("POST", "/v2/repository/models/x/load", b'{"parameters": {"config": "%b"}}' % text),
        ("POST", "/v2/trace/setting", b'{"trace_file": "%b"}' % text),
        ("POST", "/v2/logging", b'{"log_file": "%b"}' % text),
    ]


@needs_linux
def test_a_server_connects_to_nobody_whatever_it_is_asked(tmp_path: Path) -> None:
    """Seen from within, by Python's audit events, and from outside, by the system's tables."""
    notes = tmp_path / "notes"
    settings: dict[str, Any] = {
        "PYTHONPATH": str(WATCHED),
        "LIMELIGHT_TEST_NOTES": str(notes),
        "LIMELIGHT_MODEL_CONTROL": "explicit",
    }
    with (
        socket.create_server(("127.0.0.1", 0)) as bait,
        start_server(**settings) as server,
        watch_sockets(server.process.pid) as seen,
        httpx.Client(base_url=server.url, timeout=60) as client,
    ):
        bait.settimeout(0)
        for door in DOORS:
            ask(client, door, draw_tokens())
        for path in READS:
            client.get(path)
        for method, path, body in name_address(f"http://127.0.0.1:{bait.getsockname()[1]}/x"):
            headers = {"Referer": path, "X-Forwarded-For": "127.0.0.1", "Host": "127.0.0.1"}
            client.request(method, path, content=body, headers=headers)
        with pytest.raises(BlockingIOError):
            bait.accept()
    assert notes.read_text() == ""
    port = urlsplit(server.url).port
    assert {(each.kind, each.local_port) for each in seen} == {("tcp", port)}
    assert any(each.is_listening for each in seen)
    assert any(each.remote_port for each in seen)


@pytest.mark.parametrize(
    ("code", "noted"),
    [
        ("socket.create_connection(('127.0.0.1', {port}))", "socket.connect"),
        ("urllib.request.urlopen('http://127.0.0.1:{port}/', timeout=0.01)", "urllib.Request"),
        ("socket.getaddrinfo('localhost', {port})", "socket.getaddrinfo"),
        ("subprocess.run([sys.executable, '-c', ''])", "subprocess.Popen"),
        ("pickle.loads(pickle.dumps(socket.socket))", "pickle.find_class"),
    ],
)
def test_the_watch_sees_what_it_is_for(tmp_path: Path, code: str, noted: str) -> None:
    notes = tmp_path / "notes"
    environment = {"PYTHONPATH": str(WATCHED), "LIMELIGHT_TEST_NOTES": str(notes)}
    imports = "import pickle, socket, subprocess, sys, urllib.request; "
    with socket.create_server(("127.0.0.1", 0)) as bait:
        subprocess.run(
            [sys.executable, "-c", imports + code.format(port=bait.getsockname()[1])],
            env=os.environ | environment,
            check=False,
            stderr=subprocess.DEVNULL,
            timeout=60,
        )
    assert noted in notes.read_text()


@needs_linux
def test_the_watch_from_outside_sees_a_connection() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as bait,
        watch_sockets(os.getpid()) as seen,
        socket.create_connection(bait.getsockname()) as connection,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams,
    ):
        datagrams.bind(("127.0.0.1", 0))
        port, other = connection.getsockname()[1], datagrams.getsockname()[1]
        wanted, deadline = {("tcp", port), ("udp", other)}, time.monotonic() + PATIENCE_S
        while not wanted <= {(each.kind, each.local_port) for each in seen.copy()}:
            assert time.monotonic() < deadline
