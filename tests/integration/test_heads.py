"""Request lines and headers: bounded, however they come."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import httpx
import pytest

TIMEOUT_S = 30
KIB = 1024
TOO_LARGE = (
    "the request line and headers are larger than 65536 bytes, expected fewer; "
    "options of many bytes go into the body"
)


@contextmanager
def connect(server_url: str) -> Iterator[socket.socket]:
    address = urlsplit(server_url)
    with socket.create_connection((address.hostname, address.port), TIMEOUT_S) as connection:
        yield connection


def read_all(connection: socket.socket) -> bytes:
    """What comes until the server closes; a reset after its answer is an end too."""
    answer = b""
    try:
        while part := connection.recv(65536):
            answer += part
    except ConnectionResetError:
        pass
    return answer


@pytest.mark.parametrize(
    "endless",
    [
        pytest.param(b"GET /" + b"x" * KIB, id="a request line"),
        pytest.param(b"GET / HTTP/1.1\r\nName: " + b"x" * KIB, id="a header"),
        pytest.param(b"GET / HTTP/1.1\r\n" + b"Name: value\r\n" * 99, id="many headers"),
    ],
)
def test_a_head_that_does_not_end_is_refused(server_url: str, endless: bytes) -> None:
    more = b"x" * KIB if not endless.endswith(b"\n") else b"Name: value\r\n" * 99
    with connect(server_url) as connection:
        try:
            connection.sendall(endless)
            for _ in range(400):
                connection.sendall(more)
        except (BrokenPipeError, ConnectionResetError):
            pass
        answer = read_all(connection)
    if answer:  # a reset may overtake it, since bytes of ours were still on their way
        assert answer.startswith(b"HTTP/1.1 400 ")
        assert TOO_LARGE in answer.decode()


def test_a_large_head_that_ends_is_taken(client: httpx.Client) -> None:
    headers = {f"X-Name-{i}": "x" * 1000 for i in range(30)}
    assert client.get("/v2/health/live", headers=headers).status_code == 200


def test_heads_are_counted_one_by_one(client: httpx.Client) -> None:
    headers = {f"X-Name-{i}": "x" * 1000 for i in range(30)}
    for _ in range(5):
        assert client.get("/v2/health/live", headers=headers).status_code == 200
