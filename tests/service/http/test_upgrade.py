"""Clients that would rather speak another protocol are answered in HTTP/1.1, bodies and all."""

from collections.abc import Iterator

import pytest

from tests.service.http.live_server import LiveServer, ask, read_answer, serve
from tests.service.http.shop import Shop

# What Java's HttpClient sends with its first request to a plain address.
WISH = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAEAAEAAAAIAAAAB")


@pytest.fixture(name="shop")
def make_shop() -> Shop:
    return Shop()


@pytest.fixture(name="server")
def start_server(shop: Shop) -> Iterator[LiveServer]:
    with serve(shop) as server:
        yield server


@pytest.mark.parametrize("size", [0, 5, 300_000])
def test_the_body_of_a_request_with_a_wish_is_read(
    server: LiveServer, shop: Shop, size: int
) -> None:
    with server.connect() as client:
        for _ in range(2):
            client.sendall(ask("/", bytes(size), *WISH, "X-Kept: yes"))
            assert read_answer(client)[::2] == (200, str(size).encode())
        client.sendall(ask("/", b"123"))
        assert read_answer(client)[2] == b"3"
    assert shop.heads[0] == {
        "host": "x",
        "content-length": str(size),
        "connection": "",
        "x-kept": "yes",
    }


def test_byte_by_byte_it_is_the_same(server: LiveServer) -> None:
    with server.connect() as client:
        for byte in ask("/", b"12345", *WISH):
            client.sendall(bytes([byte]))
        assert read_answer(client)[2] == b"5"


def test_chunks_are_read_too(server: LiveServer) -> None:
    lines = ["POST / HTTP/1.1", "Host: x", "Transfer-Encoding: chunked", *WISH, "", ""]
    with server.connect() as client:
        client.sendall("\r\n".join(lines).encode() + b"5\r\nhello\r\n0\r\n\r\n")
        assert read_answer(client)[2] == b"5"


def test_the_other_words_of_the_connection_header_hold(server: LiveServer) -> None:
    with server.connect() as client:
        client.sendall(ask("/", b"12", "Connection: upgrade, close", "Upgrade: websocket"))
        status, headers, body = read_answer(client)
        assert (status, headers["connection"], body) == (200, "close", b"2")
        assert client.recv(1) == b""


def test_several_sent_ahead_of_their_answers_are_answered_in_order(server: LiveServer) -> None:
    with server.connect() as client:
        client.sendall(b"".join(ask("/", bytes(size), *WISH) for size in (3, 0, 200_000, 7)))
        assert [read_answer(client)[2] for _ in range(4)] == [b"3", b"0", b"200000", b"7"]
