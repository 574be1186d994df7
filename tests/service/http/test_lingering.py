"""An answer that comes before the end of its request can be read, whatever the client does."""

import json
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.service.http.live_server import LiveServer, ask, read_answer, read_to_end, serve
from tests.service.http.shop import TOO_LARGE, Shop

MIB = 2**20
DRAIN_BYTES = MIB
DRAIN_TIMEOUT_S = 1.5
WITHIN = DRAIN_BYTES // 2
BEYOND = 64 * MIB  # more than the kernel's buffers take
SLOW_S = 20  # generous: a machine that tests may be busy


@pytest.fixture(name="server", scope="module")
def start_server() -> Iterator[LiveServer]:
    with serve(Shop(), drain_bytes=DRAIN_BYTES, drain_timeout_s=DRAIN_TIMEOUT_S) as server:
        yield server


@pytest.mark.parametrize("path", ["/early", "/early-close"])
@pytest.mark.parametrize("size", [WITHIN, BEYOND])
@pytest.mark.parametrize("chunked", [False, True])
def test_a_client_that_sends_all_before_it_reads_gets_the_answer(
    server: LiveServer, path: str, size: int, chunked: bool
) -> None:
    parts = iter([bytes(WITHIN)] * (size // WITHIN))
    content = parts if chunked else b"".join(parts)
    response = httpx.post(server.url + path, content=content, timeout=SLOW_S)
    assert (response.status_code, response.content) == (413, TOO_LARGE)


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is missing")
@pytest.mark.parametrize("path", ["/early", "/early-close"])
@pytest.mark.parametrize("size", [WITHIN, BEYOND])
@pytest.mark.parametrize(
    "header", ["Expect: 100-continue", "Expect:", "Transfer-Encoding: chunked"]
)
def test_curl_gets_the_answer(
    server: LiveServer, tmp_path: Path, path: str, size: int, header: str
) -> None:
    (tmp_path / "body").write_bytes(bytes(size))
    command = ["curl", "--silent", "--show-error", "--max-time", str(SLOW_S), "--header", header]
    command += ["--write-out", "%{http_code}", "--data-binary", f"@{tmp_path / 'body'}"]
    done = subprocess.run(
        [*command, server.url + path], check=True, capture_output=True, timeout=2 * SLOW_S
    )
    assert done.stdout == TOO_LARGE + b"413"


def test_a_body_that_ends_within_the_bounds_leaves_the_connection_as_it_was(
    server: LiveServer,
) -> None:
    with server.connect() as client:
        for _ in range(3):
            client.sendall(ask("/early", bytes(WITHIN)))
            assert read_answer(client)[::2] == (413, TOO_LARGE)
        client.sendall(ask("/", bytes(WITHIN)))
        assert read_answer(client)[::2] == (200, str(WITHIN).encode())


def test_a_request_that_comes_with_the_end_of_a_refused_one_is_not_idleness() -> None:
    """The time that a connection may be idle ran on through it: its answer was cut."""
    shop = Shop()
    with serve(shop, keep_alive_s=1) as server, server.connect() as client:
        refused = ask("/early", b"12345")
        client.sendall(refused[:-1])
        assert read_answer(client)[0] == 413
        client.sendall(refused[-1:] + ask("/work"))
        time.sleep(1.5)
        shop.release.set()
        assert read_answer(client)[2] == b"done"


def test_what_is_sent_within_the_bounds_meets_no_reset_though_the_connection_ends(
    server: LiveServer,
) -> None:
    request = ask("/early-close", bytes(WITHIN))
    with server.connect() as client:
        client.sendall(request[:1000])
        status, headers, _ = read_answer(client)
        assert (status, headers["connection"]) == (413, "close")
        assert client.recv(1) == b""  # the server will write no more
        client.sendall(request[1000:])
        client.shutdown(socket.SHUT_WR)
        assert client.recv(1) == b""


@pytest.mark.parametrize("path", ["/early", "/early-close"])
def test_a_body_that_does_not_end_is_cut_by_its_time(server: LiveServer, path: str) -> None:
    started_s = time.monotonic()
    with server.connect() as client:
        client.sendall(ask(path).replace(b"Length: 0", b"Length: 10000000000"))
        assert read_answer(client)[0] == 413
        with pytest.raises(BrokenPipeError):  # a reset that came before the end would say so
            send_for_ever(client, b"x", pause_s=0.05)
    assert DRAIN_TIMEOUT_S / 2 < time.monotonic() - started_s < SLOW_S


def test_a_body_that_does_not_end_is_cut_by_its_size(server: LiveServer) -> None:
    with server.connect() as client:
        client.sendall(b"POST /early HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        with pytest.raises(BrokenPipeError):
            send_for_ever(client, b"10000\r\n" + bytes(65536) + b"\r\n")
        assert read_answer(client)[::2] == (413, TOO_LARGE)


def test_what_is_not_http_is_drained_too(server: LiveServer) -> None:
    with server.connect() as client:
        client.sendall(b"garbage\r\n\r\n" + bytes(WITHIN))
        answer = read_to_end(client)
        client.sendall(bytes(1000))
    body = answer.partition(b"\r\n\r\n")[2]
    assert json.loads(body) == {"error": "the request is not valid HTTP"}


def send_for_ever(client: socket.socket, part: bytes, pause_s: float = 0) -> None:
    """Send until the connection breaks, or for longer than a server should take it."""
    end_s = time.monotonic() + SLOW_S
    while time.monotonic() < end_s:
        client.sendall(part)
        time.sleep(pause_s)
