"""A connection takes what HTTP allows, within bounds, and answers what no application sees."""

import json
from collections.abc import Iterator

import pytest

from service.http.refusals import MAX_HEAD_BYTES, MAX_PIPELINED
from tests.service.http.live_server import (
    LiveServer,
    ask,
    read_answer,
    read_to_end,
    serve,
    wait_until,
)
from tests.service.http.shop import Shop

NOT_HTTP = "the request is not valid HTTP"
HEAD_TOO_LARGE = (
    "the request line and headers are larger than 65536 bytes, expected fewer; options of many "
    "bytes go into the body"
)
TOO_MANY_PIPELINED = (
    "more than 64 requests were sent ahead of their answers, expected fewer: read the answers, or "
    "open more connections"
)


@pytest.fixture(name="shop")
def make_shop() -> Shop:
    return Shop()


@pytest.fixture(name="server")
def start_server(shop: Shop) -> Iterator[LiveServer]:
    with serve(shop) as server:
        yield server
        shop.release.set()


def read_refusal(answer: bytes, status: str = "400 Bad Request") -> str:
    """The text of an error that a connection itself wrote, as the last of all."""
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(f"HTTP/1.1 {status}\r\n".encode())
    lines = head.decode().split("\r\n")
    assert "content-type: application/json" in lines
    assert f"content-length: {len(body)}" in lines
    assert "connection: close" in lines
    assert any(line.startswith("x-request-id: ") for line in lines)
    return str(json.loads(body)["error"])


@pytest.mark.parametrize(
    "garbage", [b"hello\r\n\r\n", b"\x16\x03\x01\x02\x00", b"GET  / x\r\n\r\n"]
)
def test_what_is_not_http_is_answered_and_the_connection_closed(
    server: LiveServer, garbage: bytes
) -> None:
    with server.connect() as client:
        client.sendall(garbage)
        assert read_refusal(read_to_end(client)) == NOT_HTTP


def test_a_tunnel_is_not_http_to_a_server(server: LiveServer) -> None:
    with server.connect() as client:
        client.sendall(b"CONNECT other:443 HTTP/1.1\r\nHost: other:443\r\n\r\n")
        assert read_refusal(read_to_end(client)) == NOT_HTTP


def test_a_transfer_coding_below_the_chunks_is_not_offered(server: LiveServer) -> None:
    with server.connect() as client:
        client.sendall(
            b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"
        )
        assert read_refusal(read_to_end(client), "501 Not Implemented") == (
            "header Transfer-Encoding is 'gzip, chunked', expected chunked alone; compress with "
            "Content-Encoding"
        )


@pytest.mark.parametrize(
    ("start", "more"),
    [
        pytest.param(b"GET /", b"x", id="a request line"),
        pytest.param(b"GET / HTTP/1.1\r\nName: ", b"x", id="a header"),
        pytest.param(b"GET / HTTP/1.1\r\n", b"N: v\r\n", id="many headers"),
        pytest.param(b"", b"\r\n", id="empty lines before a request"),
        pytest.param(
            b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1;",
            b"x",
            id="chunk extensions",
        ),
        pytest.param(
            b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
            b"N: v\r\n",
            id="trailers",
        ),
    ],
)
def test_what_is_neither_a_body_nor_ends_is_refused(
    server: LiveServer, start: bytes, more: bytes
) -> None:
    with server.connect() as client:
        client.sendall(start)
        client.sendall(more * (5 * MAX_HEAD_BYTES // len(more)))  # the first read may hold 256 KiB
        assert read_refusal(read_to_end(client)) == HEAD_TOO_LARGE


def test_a_body_is_not_part_of_the_head_and_each_head_counts_for_itself(
    server: LiveServer,
) -> None:
    padding = f"X-Padding: {'x' * (MAX_HEAD_BYTES - 1000)}"
    with server.connect() as client:
        for size in (0, 10 * MAX_HEAD_BYTES, 7):
            client.sendall(ask("/", bytes(size), padding))
            assert read_answer(client)[::2] == (200, str(size).encode())


def test_a_head_that_comes_with_the_end_of_a_body_is_not_charged_for_it(
    server: LiveServer,
) -> None:
    second = ask("/", b"12345")
    with server.connect() as client:
        client.sendall(ask("/", bytes(3 * MAX_HEAD_BYTES)) + second[:10])
        assert read_answer(client)[2] == str(3 * MAX_HEAD_BYTES).encode()
        client.sendall(second[10:])
        assert read_answer(client)[2] == b"5"


def test_requests_sent_ahead_of_their_answers_are_answered_in_order(server: LiveServer) -> None:
    sizes = [0, 100_000, 1, 300_000, 17]
    with server.connect() as client:
        client.sendall(b"".join(ask("/", bytes(size)) for size in sizes))
        assert [read_answer(client)[2] for _ in sizes] == [str(size).encode() for size in sizes]


def test_no_more_is_read_while_requests_wait_for_answers(server: LiveServer, shop: Shop) -> None:
    """What is read would stay in memory: a client that never reads an answer would fill it."""
    with server.connect() as client:
        client.settimeout(1)
        client.sendall(ask("/work") * 2)
        wait_until(lambda: shop.begun == 1)
        with pytest.raises(TimeoutError):
            client.sendall(ask("/", bytes(64 * 2**20)))  # more than the kernel's buffers take
        assert shop.begun == 1


def test_too_many_requests_sent_ahead_are_refused(server: LiveServer, shop: Shop) -> None:
    with server.connect() as client:
        client.sendall(ask("/work"))
        wait_until(lambda: shop.begun == 1)
        client.sendall(ask("/") * (MAX_PIPELINED + 1))
        assert read_refusal(read_to_end(client)) == TOO_MANY_PIPELINED
        wait_until(lambda: shop.ended == ["the client left before its answer was ready"])


def test_garbage_behind_a_request_ends_its_work(server: LiveServer, shop: Shop) -> None:
    with server.connect() as client:
        client.sendall(ask("/work"))
        wait_until(lambda: shop.begun == 1)
        client.sendall(b"garbage\r\n\r\n")
        assert read_refusal(read_to_end(client)) == NOT_HTTP
        wait_until(lambda: shop.ended == ["the client left before its answer was ready"])


def test_nothing_is_written_into_the_midst_of_an_answer(server: LiveServer) -> None:
    size = 32 * 2**20
    with server.connect() as client:
        client.sendall(ask(f"/large?{size}"))
        read = client.recv(2**16)
        client.sendall(b"garbage\r\n\r\n")
        answer = read + b"".join(iter(lambda: client.recv(2**20), b""))
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK")
    assert not body[:size].strip(b"\0")


def test_headers_behind_a_body_are_not_headers_of_the_request(
    server: LiveServer, shop: Shop
) -> None:
    """RFC 9110, 6.5.1: a proxy in front may have checked the others alone."""
    with server.connect() as client:
        client.sendall(
            b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
            b"5\r\nhello\r\n0\r\nAuthorization: Bearer stolen\r\n\r\n"
        )
        assert read_answer(client)[2] == b"5"
    assert shop.heads == [{"host": "x", "transfer-encoding": "chunked"}]
