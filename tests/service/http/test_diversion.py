"""A body of known length goes past the parser, and what follows it does not notice."""

import gzip
import socket
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.http.diversion import Diversion, find_length
from tests.service.http.live_server import (
    LiveServer,
    ask,
    read_answer,
    read_to_end,
    send_apart,
    serve,
    split,
    wait_until,
)
from tests.service.http.reader import Reader
from tests.service.http.test_connection import NOT_HTTP, read_refusal

KIB = 2**10
LARGE = 300 * KIB + 7  # more than uvicorn takes before it is asked for
MAX_BYTES = 1000 * KIB


@pytest.fixture(name="reader")
def make_reader() -> Reader:
    return Reader(max_request_bytes=MAX_BYTES)


@pytest.fixture(name="server")
def start_server(reader: Reader) -> Iterator[LiveServer]:
    with serve(reader) as server:
        yield server


def make_body(size: int) -> bytes:
    return np.random.default_rng(size).bytes(size)


@pytest.fixture(name="shared", scope="module")
def start_shared() -> Iterator[tuple[Reader, LiveServer]]:
    reader = Reader(max_request_bytes=MAX_BYTES)
    with serve(reader) as server:
        yield reader, server


@given(
    st.lists(st.sampled_from([1, 2, 100, 65536, 65537, LARGE]), min_size=1, max_size=3),
    st.lists(st.integers(0, 2**20), max_size=5),
)
@settings(max_examples=60)
def test_requests_cut_anywhere_are_read_as_they_were_sent(
    shared: tuple[Reader, LiveServer], sizes: list[int], places: list[int]
) -> None:
    reader, server = shared
    bodies = [make_body(size) for size in sizes]
    reader.bodies.clear()
    with server.connect() as client:
        requests = b"".join(ask("/", body) for body in bodies) + ask("/", b"the next")
        send_apart(client, *split(requests, places))
        answers = [read_answer(client)[::2] for _ in range(len(bodies) + 1)]
    assert reader.bodies == [*bodies, b"the next"]
    assert answers == [(200, str(len(body)).encode()) for body in reader.bodies]


@pytest.mark.parametrize("piece", [1, 7], ids=str)
def test_a_body_may_come_byte_by_byte(server: LiveServer, reader: Reader, piece: int) -> None:
    body = make_body(211)
    head, rest = ask("/", body)[: -len(body)], [body[i : i + piece] for i in range(0, 211, piece)]
    with server.connect() as client:
        send_apart(client, head, *rest)
        assert read_answer(client)[::2] == (200, b"211")
        client.sendall(ask("/", b"the next"))
        assert read_answer(client)[::2] == (200, b"8")
    assert reader.bodies == [body, b"the next"]


@pytest.mark.parametrize("version", ["HTTP/1.1", "HTTP/1.0"])
@pytest.mark.parametrize("size", [3, LARGE])
def test_the_last_request_of_a_connection_is_answered_and_the_connection_closed(
    server: LiveServer, reader: Reader, version: str, size: int
) -> None:
    body = make_body(size)
    request = ask("/", body, "Connection: close").replace(b"HTTP/1.1", version.encode())
    with server.connect() as client:
        send_apart(client, request[:-2], request[-2:])
        head, _, text = read_to_end(client).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 ")
    assert text == str(size).encode()
    assert reader.bodies == [body]


@pytest.mark.parametrize("behind", [b"\r\n", b"garbage\r\n\r\n", ask("/", b"more")])
@pytest.mark.parametrize("size", [3, LARGE])
def test_what_follows_the_last_request_is_ignored(
    server: LiveServer, reader: Reader, size: int, behind: bytes
) -> None:
    """RFC 9112, 9.6: a server must not process what comes behind "close"."""
    body = make_body(size)
    request = ask("/", body, "Connection: close")
    with server.connect() as client:
        send_apart(client, request[: -size // 2], request[-size // 2 :] + behind)
        answer = client.recv(65536)
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert reader.bodies == [body]


def test_garbage_behind_a_body_is_refused(server: LiveServer) -> None:
    request = ask("/", make_body(LARGE))
    with server.connect() as client:
        send_apart(client, request[:-2], request[-2:])
        assert read_answer(client)[0] == 200
        client.sendall(b"garbage\r\n\r\n")
        assert read_refusal(read_to_end(client)) == NOT_HTTP


def test_a_wish_for_another_protocol_hinders_no_body(server: LiveServer, reader: Reader) -> None:
    body = make_body(LARGE)
    wish = "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABk"
    with server.connect() as client:
        request = ask("/", body, *wish)
        send_apart(client, request[:-5], request[-5:], ask("/", b"the next"))
        assert [read_answer(client)[2] for _ in range(2)] == [str(LARGE).encode(), b"8"]
    assert reader.bodies == [body, b"the next"]


def test_who_waits_to_be_told_to_go_on_is_told(server: LiveServer, reader: Reader) -> None:
    body = make_body(LARGE)
    with server.connect() as client:
        request = ask("/", body, "Expect: 100-continue")
        client.sendall(request[:-LARGE])
        assert client.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.sendall(body + ask("/", b"the next"))
        assert [read_answer(client)[2] for _ in range(2)] == [str(LARGE).encode(), b"8"]
    assert reader.bodies == [body, b"the next"]
    assert [inlet is None for inlet in reader.inlets] == [True, False]


def test_a_compressed_body_is_inflated(server: LiveServer, reader: Reader) -> None:
    body = make_body(LARGE)
    with server.connect() as client:
        packed = ask("/", gzip.compress(body), "Content-Encoding: gzip")
        send_apart(client, packed[:1000], packed[1000:] + ask("/", b"the next"))
        assert [read_answer(client)[2] for _ in range(2)] == [str(LARGE).encode(), b"8"]
    assert reader.bodies == [body, b"the next"]


def test_a_body_in_chunks_goes_through_the_parser(server: LiveServer, reader: Reader) -> None:
    with server.connect() as client:
        client.sendall(
            b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
            b"5\r\nhello\r\n0\r\n\r\n" + ask("/", b"the next")
        )
        assert [read_answer(client)[2] for _ in range(2)] == [b"5", b"8"]
    assert [inlet is None for inlet in reader.inlets] == [True, False]


@pytest.mark.parametrize("leave", ["close", "half-close"])
def test_who_leaves_in_mid_body_ends_the_request(
    server: LiveServer, reader: Reader, leave: str
) -> None:
    with server.connect() as client:
        client.sendall(ask("/", make_body(LARGE))[:-2])
        wait_until(lambda: reader.holdings.bodies.in_use_bytes == LARGE - 2)
        if leave == "half-close":
            client.shutdown(socket.SHUT_WR)
            assert client.recv(1) == b""
        else:
            client.close()
        wait_until(lambda: server.connections == 0)
    wait_until(lambda: reader.errors == ["the client left before its answer was ready"])
    assert server.departures == ["body"]
    assert reader.holdings.bodies.in_use_bytes == 0


@pytest.mark.parametrize(
    "length", ["2000000", "2000000 ", "2000000\t", "02000000", f"{2**64 - 1} "], ids=repr
)
def test_a_body_beyond_the_bound_is_refused_however_its_length_is_written(
    server: LiveServer, reader: Reader, length: str
) -> None:
    with server.connect() as client:
        client.sendall(f"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n".encode())
        status, _, text = read_answer(client)
    assert status == 413
    assert b"expected at most 1024000 bytes (LIMELIGHT_MAX_REQUEST_BYTES)" in text
    assert reader.bodies == []


@pytest.mark.parametrize(
    "headers",
    [
        ["Content-Length: 5", "Content-Length: 5"],
        ["Content-Length: 5", "Transfer-Encoding: chunked"],
        ["Transfer-Encoding: chunked", "Content-Length: 5"],
        ["Content-Length: +5"],
        ["Content-Length: 5, 5"],
        ["Content-Length: 0x5"],
        [f"Content-Length: {2**64}"],
        [f"Content-Length: {'0' * 5000}5"],
    ],
    ids=lambda headers: " ".join(headers)[:60],
)
def test_a_length_that_two_readers_may_read_in_two_ways_is_refused(
    server: LiveServer, headers: list[str]
) -> None:
    with server.connect() as client:
        head = "\r\n".join(["POST / HTTP/1.1", "Host: x", *headers, "", ""])
        client.sendall(head.encode() + b"12345")
        assert read_refusal(read_to_end(client)) == NOT_HTTP


def test_nothing_holds_a_body_that_was_answered(server: LiveServer, reader: Reader) -> None:
    """An idle connection would hold its last one, which nobody counts."""
    request = ask("/", make_body(LARGE))
    with server.connect() as client:
        send_apart(client, request[:-2], request[-2:])
        assert read_answer(client)[0] == 200
        assert len(reader.left) == 1
        wait_until(lambda: reader.left[0]() is None, 5)


@pytest.mark.parametrize(
    ("headers", "length"),
    [([], 0), ([(b"host", b"x")], 0), ([(b"host", b"x"), (b"content-length", b"17")], 17)],
)
def test_the_length_of_a_body_is_that_of_its_header(
    headers: list[tuple[bytes, bytes]], length: int
) -> None:
    assert find_length(headers) == length


def test_what_is_left_of_a_body_whose_connection_is_over_is_not_parsed() -> None:
    diversion: Any = Diversion.__new__(Diversion)
    diversion.line, diversion.parser = SimpleNamespace(is_closing=lambda: True), None
    diversion.skip_body(memoryview(b"12345"))
    assert diversion.parser is None
