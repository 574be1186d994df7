"""A request that is alone is answered when its body is whole; nobody else notices."""

import socket
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.http.prompting import MAX_BYTES
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
from tests.service.http.prompter import BODY, HEAD, Prompter, hold, read_whole
from tests.service.http.reader import Reader
from tests.service.http.test_connection import NOT_HTTP, read_refusal

LONG_S, SHORT_S = 600.0, 0.01


@pytest.fixture(name="server")
def use_server(unhurried: LiveServer) -> LiveServer:
    return unhurried


@given(
    st.lists(
        st.sampled_from([1, 2, 100, 65535, 65537, MAX_BYTES, MAX_BYTES + 1]),
        min_size=1,
        max_size=4,
    ),
    st.lists(st.integers(0, 2**20), max_size=5),
)
@settings(max_examples=60)
def test_requests_cut_anywhere_are_answered_in_order_whoever_does(
    shared: tuple[Reader, Prompter, LiveServer], sizes: list[int], places: list[int]
) -> None:
    reader, prompter, server = shared
    reader.bodies.clear()
    prompter.asked.clear()
    bodies = [np.random.default_rng(size).bytes(size) for size in sizes]
    with server.connect() as client:
        send_apart(client, *split(b"".join(ask("/", body) for body in bodies), places))
        texts, at_once = zip(*(read_whole(client) for _ in bodies), strict=True)
    assert list(texts) == [b"%d" % size for size in sizes]
    prompt = iter([body for body, is_alone in prompter.asked if is_alone])
    usual = iter(reader.bodies)
    assert bodies == [next(prompt if was_at_once else usual) for was_at_once in at_once]
    assert [*prompt, *usual] == []
    wait_until(lambda: not prompter.is_waiting)


@pytest.mark.parametrize("arrived", range(0, len(BODY), 5))
def test_a_request_is_answered_by_the_bytes_that_make_it_whole(
    server: LiveServer, prompter: Prompter, reader: Reader, arrived: int
) -> None:
    with server.connect() as client:
        hold(client, prompter, BODY[:arrived])
        assert not server.server.server_state.tasks
        client.sendall(BODY[arrived:])
        assert read_whole(client) == (b"21", True)
        client.sendall(HEAD + BODY)
        assert read_whole(client) == (b"21", True), "all of it with its head"
    assert prompter.asked == [(BODY, True)] * 2
    assert reader.inlets == []
    assert server.server.server_state.total_requests == 2


def test_a_body_may_come_byte_by_byte(
    server: LiveServer, prompter: Prompter, reader: Reader
) -> None:
    with server.connect() as client:
        send_apart(client, HEAD, *(BODY[i : i + 1] for i in range(len(BODY))))
        assert read_whole(client) == (b"21", True)
    assert (prompter.asked, reader.inlets) == ([(BODY, True)], [])


@pytest.mark.parametrize("arrived", [0, 5, 20])
def test_a_slow_body_is_read_as_any_other(
    reader: Reader, prompter: Prompter, patience_s: Callable[[float], None], arrived: int
) -> None:
    patience_s(SHORT_S)
    with serve(reader, answerer=prompter) as server, server.connect() as client:
        client.sendall(HEAD + BODY[:arrived])
        wait_until(lambda: len(reader.inlets) == 1)
        assert not prompter.is_waiting
        client.sendall(BODY[arrived:] + HEAD + BODY)
        assert read_whole(client) == (b"21", False)
        assert read_whole(client)[0] == b"21"
    assert reader.bodies[0] == BODY


@pytest.mark.parametrize(
    ("request_", "text"),
    [
        pytest.param(ask("/", bytes(MAX_BYTES + 1)), b"262145", id="too large"),
        pytest.param(ask("/other", b"12"), b"2", id="another path"),
        pytest.param(ask("/", b"12", "Expect: 100-continue"), b"2", id="a wish to be told"),
        pytest.param(
            b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n12\r\n0\r\n\r\n",
            b"2",
            id="chunks",
        ),
    ],
)
def test_other_requests_are_begun_at_once(
    server: LiveServer, prompter: Prompter, request_: bytes, text: bytes
) -> None:
    with server.connect() as client:
        client.sendall(request_)
        if b"Expect" in request_:
            assert client.recv(25) == b"HTTP/1.1 100 Continue\r\n\r\n"
        assert read_whole(client) == (text, False)
    assert prompter.asked == []


def test_a_request_without_a_body_is_begun_at_once(
    server: LiveServer, prompter: Prompter, reader: Reader
) -> None:
    with server.connect() as client:
        client.sendall(ask("/"))
        assert read_answer(client)[0] == 400
    assert (prompter.asked, reader.inlets) == ([], [None])


def test_the_largest_that_is_waited_for(server: LiveServer, prompter: Prompter) -> None:
    with server.connect() as client:
        client.sendall(ask("/", bytes(MAX_BYTES)))
        assert read_whole(client) == (b"%d" % MAX_BYTES, True)
    assert not prompter.is_waiting


def test_a_request_that_nobody_answers_has_lost_nothing(
    reader: Reader, patience_s: Callable[[float], None]
) -> None:
    patience_s(LONG_S)
    prompter = Prompter(is_willing=False)
    with serve(reader, answerer=prompter) as server, server.connect() as client:
        hold(client, prompter)
        client.sendall(BODY[5:])
        assert read_whole(client) == (b"21", False)
    assert prompter.asked == [(BODY, True)]
    assert reader.bodies == [BODY]


@pytest.mark.parametrize("leave", ["close", "half-close"])
def test_who_leaves_while_its_request_is_held_is_counted_as_any_other(
    server: LiveServer, prompter: Prompter, reader: Reader, leave: str
) -> None:
    with server.connect() as client:
        hold(client, prompter)
        if leave == "half-close":
            client.shutdown(socket.SHUT_WR)
            assert client.recv(1) == b""
        else:
            client.close()
        wait_until(lambda: server.connections == 0)
    wait_until(lambda: reader.errors == ["the client left before its answer was ready"])
    assert server.departures == ["body"]
    assert (prompter.asked, prompter.is_waiting) == ([], False)


def test_garbage_behind_a_request_is_refused_and_its_answer_comes_first(
    server: LiveServer,
) -> None:
    with server.connect() as client:
        client.sendall(HEAD + BODY + b"garbage\r\n\r\n")
        assert read_whole(client) == (b"21", True)
        assert read_refusal(read_to_end(client)) == NOT_HTTP


@pytest.mark.parametrize("version", ["HTTP/1.1", "HTTP/1.0"])
def test_the_last_request_of_a_connection_is_answered_and_the_connection_closed(
    server: LiveServer, prompter: Prompter, version: str
) -> None:
    request = ask("/", BODY, "Connection: close").replace(b"HTTP/1.1", version.encode())
    with server.connect() as client:
        client.sendall(request + ask("/", b"what follows is ignored"))
        head, _, text = read_to_end(client).partition(b"\r\n\r\n")
    assert b"\r\nconnection: close" in head
    assert text == b"21"
    assert prompter.asked == [(BODY, True)]


def test_a_wish_for_another_protocol_hinders_nothing(
    server: LiveServer, prompter: Prompter
) -> None:
    wish = "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABk"
    with server.connect() as client:
        client.sendall(ask("/", BODY, *wish))
        assert read_whole(client) == (b"21", True)
    assert prompter.asked == [(BODY, True)]


def test_a_server_that_stops_answers_what_it_holds(server: LiveServer, prompter: Prompter) -> None:
    with server.connect() as client, server.connect() as idle:
        hold(client, prompter)
        server.server.should_exit = True
        assert idle.recv(1) == b"", "the server is stopping"
        client.sendall(BODY[5:])
        status, headers, text = read_answer(client)
        assert (status, headers["connection"], text) == (200, "close", b"21")
        assert client.recv(1) == b""
