"""Request lines and headers: bounded, however they come."""

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import httpx
import pytest

TIMEOUT_S = 30
MAX_HEAD_BYTES = 65536
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
    """What comes until the server closes the connection."""
    answer = b""
    while part := connection.recv(65536):
        answer += part
    return answer


@pytest.mark.parametrize(
    ("start", "more"),
    [
        pytest.param(b"GET /", b"x", id="a request line"),
        pytest.param(b"GET / HTTP/1.1\r\nName: ", b"x", id="a header"),
        pytest.param(b"GET / HTTP/1.1\r\n", b"N: v\r\n", id="many headers"),
    ],
)
def test_a_head_that_does_not_end_is_refused(server_url: str, start: bytes, more: bytes) -> None:
    # One byte beyond the bound and no more: what the server had not read when it closed would
    # reset the connection, and overtake its answer.
    head = (start + more * MAX_HEAD_BYTES)[: MAX_HEAD_BYTES + 1]
    with connect(server_url) as connection:
        connection.sendall(head)
        answer = read_all(connection)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert json.loads(answer.partition(b"\r\n\r\n")[2]) == {"error": TOO_LARGE}


def test_a_large_head_that_ends_is_taken(client: httpx.Client) -> None:
    headers = {f"X-Name-{i}": "x" * 1000 for i in range(30)}
    assert client.get("/v2/health/live", headers=headers).status_code == 200


def test_heads_are_counted_one_by_one(client: httpx.Client) -> None:
    headers = {f"X-Name-{i}": "x" * 1000 for i in range(30)}
    for _ in range(5):
        assert client.get("/v2/health/live", headers=headers).status_code == 200
