"""A request whose head came before goes past the parser; nobody else notices."""

import socket
import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.http import recognizing
from service.http.budget import Budget
from service.http.connection import Connection
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
from tests.service.http.prompter import BODY, HEAD, Prompter, read_whole
from tests.service.http.reader import Reader
from tests.service.http.test_connection import NOT_HTTP, read_refusal

LONG_S = 600.0
LARGE = 600_007  # more than comes with a head, and than is held otherwise


@pytest.fixture(autouse=True)
def wait_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody loses patience."""
    monkeypatch.setattr(recognizing, "READING_PATIENCE_S", LONG_S)


@pytest.fixture(name="seen")
def note_parsing(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """What the parser sees."""
    seen: list[bytes] = []
    usual = Connection._parse

    def parse(self: Connection, data: bytes | memoryview) -> None:
        seen.append(bytes(data))
        usual(self, data)

    monkeypatch.setattr(Connection, "_parse", parse)
    return seen


@pytest.fixture(name="server")
def use_server(unhurried: LiveServer, reader: Reader, prompter: Prompter) -> Iterator[LiveServer]:
    yield unhurried
    wait_until(lambda: not prompter.is_waiting)
    assert prompter.budget.in_use_bytes == 0
    assert reader.holdings.bodies.in_use_bytes == 0


def introduce(client: socket.socket, request: bytes = HEAD + BODY) -> None:
    """Let the server parse a head once."""
    client.sendall(request)
    read_whole(client)


def introduce_in_haste(client: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same; from then on a task reads what does not come at once."""
    introduce(client)
    monkeypatch.setattr(recognizing, "READING_PATIENCE_S", 0.01)


def hold(client: socket.socket, prompter: Prompter, part: bytes = BODY[:5]) -> None:
    """Send a part of a request whose head came before, and wait until it is held."""
    client.sendall(HEAD + part)
    wait_until(lambda: prompter.is_waiting)


def test_the_parser_sees_a_head_once_whichever_connection_it_comes_over(
    server: LiveServer, prompter: Prompter, seen: list[bytes]
) -> None:
    with server.connect() as first, server.connect() as second:
        introduce(first)
        parsed = b"".join(seen)
        for client in (first, second, first):
            client.sendall(HEAD + BODY)
            assert read_whole(client) == (b"21", True)
            wait_until(lambda: not server.server.server_state.tasks)
    assert (parsed, b"".join(seen)) == (HEAD + BODY, HEAD + BODY)
    assert [body for body, _ in prompter.asked] == [BODY] * 4


@given(
    st.lists(st.sampled_from([1, 2, 100, 65537, LARGE]), min_size=1, max_size=6),
    st.lists(st.integers(0, 2**21), max_size=6),
)
@settings(max_examples=60)
def test_bodies_cut_anywhere_are_what_was_sent_and_answered_in_order(
    shared: tuple[Reader, Prompter, LiveServer], sizes: list[int], places: list[int]
) -> None:
    """The sizes, and so the heads, are those of the examples before."""
    reader, prompter, server = shared
    reader.bodies.clear()
    prompter.asked.clear()
    bodies = [np.random.default_rng(turn).bytes(size) for turn, size in enumerate(sizes)]
    with server.connect() as client:
        for body in bodies:  # the next comes when the one before is answered
            request = ask("/", body)
            send_apart(client, *split(request, places))
            assert read_whole(client)[0] == b"%d" % len(body)
    # One that nobody answered at once was asked for twice.
    asked = iter([body for body, _ in prompter.asked])
    assert all(body in asked for body in bodies if body not in reader.bodies)
    wait_until(lambda: not prompter.is_waiting)
    assert prompter.budget.in_use_bytes == 0


@pytest.mark.parametrize("arrived", [0, 5, 20])
def test_a_slow_body_is_read_by_a_task_from_where_it_is(
    server: LiveServer, reader: Reader, monkeypatch: pytest.MonkeyPatch, arrived: int
) -> None:
    monkeypatch.setattr(recognizing, "READING_PATIENCE_S", 0.01)
    with server.connect() as client:
        introduce(client)
        client.sendall(HEAD + BODY[:arrived])
        wait_until(lambda: len(reader.inlets) == 1)
        client.sendall(BODY[arrived:] + ask("/", b"behind it"))
        assert read_whole(client) == (b"21", False)
        assert read_whole(client)[0] == b"9"
    assert reader.bodies[0] == BODY


@pytest.mark.parametrize("arrived", [0, 5, 21])
def test_a_request_that_nobody_answers_has_lost_nothing(
    reader: Reader, patience_s: Callable[[float], None], arrived: int
) -> None:
    patience_s(LONG_S)
    prompter = Prompter(is_willing=False)
    with serve(reader, answerer=prompter) as server, server.connect() as client:
        introduce(client)
        client.sendall(HEAD + BODY[:arrived])
        if arrived < len(BODY):
            wait_until(lambda: prompter.is_waiting)
        client.sendall(BODY[arrived:])
        assert read_whole(client) == (b"21", False)
        introduce(client, ask("/other", b"the parser is where it was"))
    assert reader.bodies[:2] == [BODY] * 2
    assert (prompter.is_waiting, prompter.budget.in_use_bytes) == (False, 0)
    assert reader.holdings.bodies.in_use_bytes == 0


def test_a_body_without_room_is_left_to_a_task(
    reader: Reader, patience_s: Callable[[float], None]
) -> None:
    patience_s(LONG_S)
    prompter = Prompter()
    prompter.budget = Budget("bodies", "BODIES", 10, 0, 60)
    with serve(reader, answerer=prompter) as server, server.connect() as client:
        introduce(client)
        other = prompter.budget.open()
        assert other.try_grow(9)
        client.sendall(HEAD + BODY[:5])
        wait_until(lambda: len(reader.inlets) == 1)
        client.sendall(BODY[5:])
        time.sleep(0.05)
        assert reader.bodies == []
        server.opened[0].loop.call_soon_threadsafe(other.close)
        assert read_whole(client) == (b"21", False)
    assert reader.bodies == [BODY]
    assert prompter.budget.in_use_bytes == 0


@pytest.mark.parametrize("leave", ["close", "half-close"])
def test_who_leaves_in_the_midst_of_a_body_is_counted_as_any_other(
    server: LiveServer, prompter: Prompter, reader: Reader, leave: str
) -> None:
    with server.connect() as client:
        introduce(client)
        hold(client, prompter)
        if leave == "half-close":
            client.shutdown(socket.SHUT_WR)
            assert client.recv(1) == b""
        else:
            client.close()
        wait_until(lambda: server.connections == 0)
    wait_until(lambda: reader.errors == ["the client left before its answer was ready"])
    assert server.departures == ["body"]


def test_what_comes_behind_a_known_request_waits_for_its_turn(
    server: LiveServer, reader: Reader
) -> None:
    bodies = [b"x" * 21] * 5
    with server.connect() as client:
        introduce(client)
        client.sendall(b"".join(ask("/", body) for body in bodies))
        assert [read_whole(client)[0] for _ in bodies] == [b"21"] * 5
        wait_until(lambda: not server.server.server_state.tasks)
        client.sendall(HEAD + BODY + b"garbage\r\n\r\n")
        assert read_whole(client)[0] == b"21"
        assert read_refusal(read_to_end(client)) == NOT_HTTP
    assert len(reader.bodies) >= 4


def test_a_head_of_line_feeds_is_judged_by_the_parser_each_time(
    server: LiveServer, prompter: Prompter
) -> None:
    """Where it took them for the end of a head, the body would seem to be one."""
    body = b"GET / HTTP/1.1\r\n\r\n"
    odd = b"POST / HTTP/1.1\nHost: x\nContent-Length: %d\n\n" % len(body)
    for _ in range(3):
        with server.connect() as client:
            client.sendall(odd + body)
            assert read_refusal(read_to_end(client)) == NOT_HTTP
    assert prompter.asked == []


def test_a_connection_that_is_to_close_is_closed(server: LiveServer) -> None:
    request = ask("/", BODY, "Connection: close")
    for _ in range(2):
        with server.connect() as client:
            client.sendall(request)
            assert b"\r\nconnection: close" in read_to_end(client)


@pytest.mark.parametrize("arrived", [0, 5])
def test_a_body_that_is_refused_unread_is_read_to_its_end_and_the_next_is_answered(
    patience_s: Callable[[float], None], monkeypatch: pytest.MonkeyPatch, arrived: int
) -> None:
    patience_s(LONG_S)
    reader, prompter = Reader(max_request_bytes=20), Prompter()
    with serve(reader, answerer=prompter) as server, server.connect() as client:
        introduce_in_haste(client, monkeypatch)
        client.sendall(HEAD + BODY[:arrived])
        assert read_answer(client)[0] == 413
        client.sendall(BODY[arrived:] + ask("/", b"short"))
        assert read_whole(client)[0] == b"5"
        wait_until(lambda: not prompter.is_waiting)
    assert prompter.budget.in_use_bytes == 0


@pytest.mark.parametrize("pieces", [[BODY[5:]], [BODY[5:9], BODY[9:]]])
def test_what_is_left_of_a_refused_body_takes_no_room_and_is_not_waited_with(
    patience_s: Callable[[float], None], monkeypatch: pytest.MonkeyPatch, pieces: list[bytes]
) -> None:
    patience_s(LONG_S)
    reader, prompter = Reader(max_request_bytes=20), Prompter()
    prompter.budget = Budget("bodies", "BODIES", 10, 0, 60)
    with serve(reader, answerer=prompter) as server, server.connect() as client:
        introduce_in_haste(client, monkeypatch)
        client.sendall(HEAD + BODY[:5])
        assert read_answer(client)[0] == 413
        wait_until(lambda: not prompter.budget.in_use_bytes)
        other = prompter.budget.open()
        assert other.try_grow(10)
        send_apart(client, *pieces)
        client.sendall(ask("/", b"short"))
        assert read_whole(client)[0] == b"5"
    assert prompter.budget.in_use_bytes == 10


def test_a_body_that_is_given_up_in_the_midst_ends_its_connection(
    patience_s: Callable[[float], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    patience_s(LONG_S)
    reader, prompter = Reader(body_timeout_s=0.05), Prompter()
    with serve(reader, answerer=prompter) as server, server.connect() as client:
        introduce_in_haste(client, monkeypatch)
        client.sendall(HEAD + BODY[:5])
        answer = read_to_end(client)
        assert answer.startswith(b"HTTP/1.1 408 ")
        assert b"\r\nconnection: close" in answer
    assert prompter.budget.in_use_bytes == 0


def test_a_server_that_stops_answers_what_it_holds(server: LiveServer, prompter: Prompter) -> None:
    with server.connect() as client, server.connect() as idle:
        introduce(client)
        hold(client, prompter)
        server.server.should_exit = True
        assert idle.recv(1) == b"", "the server is stopping"
        client.sendall(BODY[5:])
        status, headers, text = read_answer(client)
        assert (status, headers["connection"], text) == (200, "close", b"21")
        assert client.recv(1) == b""
