"""A request is answered at once only while it has the server for itself."""

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from service.http import prompting
from service.http.company import Company
from tests.service.http.live_server import (
    LiveServer,
    ask,
    read_answer,
    serve,
    wait_until,
)
from tests.service.http.prompter import BODY, HEAD, Prompter, hold, read_whole
from tests.service.http.reader import Reader
from tests.service.http.shop import Shop

LONG_S, SHORT_S = 600.0, 0.01


@pytest.fixture(name="server")
def use_server(unhurried: LiveServer) -> LiveServer:
    return unhurried


@contextmanager
def serve_two(shop: Shop, prompter: Prompter) -> Iterator[tuple[socket.socket, socket.socket]]:
    """Two connections to a shop."""
    with (
        serve(shop, answerer=prompter) as server,
        server.connect() as first,
        server.connect() as second,
    ):
        yield first, second


def test_so_many_wait_at_a_time(
    server: LiveServer, prompter: Prompter, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prompting, "MAX_WAITING", 2)
    with server.connect() as first, server.connect() as second, server.connect() as third:
        hold(first, prompter)
        second.sendall(HEAD.replace(b"Host: x", b"Host: y") + BODY[:5])
        wait_until(lambda: prompter.waiting == 2)
        third.sendall(HEAD.replace(b"Host: x", b"Host: z") + BODY)
        assert read_whole(third) == (b"21", False)
        wait_until(lambda: not server.server.server_state.tasks)
        for client in (first, second):
            client.sendall(BODY[5:])
            assert read_whole(client) == (b"21", True)
        third.sendall(HEAD.replace(b"Host: x", b"Host: z") + BODY)
        assert read_whole(third) == (b"21", True), "the next one may wait again"
    assert reader.bodies == [BODY]


def test_a_request_beside_another_is_held_and_told_so(
    prompter: Prompter, patience_s: Callable[[float], None]
) -> None:
    patience_s(LONG_S)
    with serve_two(shop := Shop(), prompter) as (first, second):
        first.sendall(ask("/work", b"1"))
        wait_until(lambda: shop.begun == 1)
        second.sendall(HEAD + BODY)
        assert read_whole(second) == (b"21", False)
        shop.release.set()
        assert read_answer(first)[2] == b"done"
    assert prompter.asked == [(BODY, False)]


def test_a_request_that_is_no_longer_alone_when_it_is_whole_is_told_so(
    prompter: Prompter, patience_s: Callable[[float], None]
) -> None:
    patience_s(LONG_S)
    with serve_two(shop := Shop(), prompter) as (first, second):
        hold(first, prompter)
        second.sendall(ask("/work", b"1"))
        wait_until(lambda: shop.begun == 1)
        first.sendall(BODY[5:])
        assert read_whole(first) == (b"21", False)
        shop.release.set()
        assert read_answer(second)[2] == b"done"
    assert prompter.asked == [(BODY, False)]


def test_a_request_in_company_is_told_so(reader: Reader, prompter: Prompter) -> None:
    class Crowd(Company):
        def is_there(self, _: float) -> bool:
            return True

    with (
        serve(reader, answerer=prompter, company=Crowd()) as server,
        server.connect() as client,
    ):
        client.sendall(HEAD + BODY)
        assert read_whole(client) == (b"21", False)
    assert prompter.asked == [(BODY, False)]


def test_a_connection_beyond_the_bound_is_refused_and_not_answered(prompter: Prompter) -> None:
    with (
        serve(Reader(), answerer=prompter, max_connections=1) as server,
        server.connect() as within,
        server.connect() as beyond,
    ):
        wait_until(lambda: server.connections == 2)
        beyond.sendall(HEAD + BODY)
        assert read_answer(beyond)[0] == 503
        wait_until(lambda: not server.server.server_state.tasks)
        within.sendall(HEAD + BODY)
        assert read_whole(within) == (b"21", True)
    assert prompter.asked == [(BODY, True)]


def test_of_requests_sent_ahead_the_first_is_answered_at_once(
    server: LiveServer, prompter: Prompter, reader: Reader
) -> None:
    """The others wait for their turns, so that nobody else waits for all of them."""
    bodies = [b"x" * size for size in range(1, 40)]
    with server.connect() as client:
        client.sendall(b"".join(ask("/", body) for body in bodies))
        answers = [read_whole(client) for _ in bodies]
        assert answers[0] == (b"1", True)
        assert [text for text, _ in answers] == [b"%d" % len(body) for body in bodies]
        wait_until(lambda: not server.server.server_state.tasks)
        client.sendall(HEAD + BODY)
        assert read_whole(client) == (b"21", True)
    assert [body for body, _ in prompter.asked] + reader.bodies == [
        bodies[0],
        BODY,
        *bodies[1:],
    ]


def test_answers_that_nobody_reads_do_not_pile_up(patience_s: Callable[[float], None]) -> None:
    patience_s(LONG_S)
    size_bytes = 2**16
    reader, prompter = Reader(), Prompter(size_bytes)
    with serve(reader, answerer=prompter) as server, server.connect() as client:
        wait_until(lambda: server.connections == 1)
        (connection,) = server.opened
        for asked in range(1, 1000):  # more than the buffers of two sockets hold
            client.sendall(HEAD + BODY)
            wait_until(lambda asked=asked: len(prompter.asked) + len(reader.inlets) == asked)  # type: ignore[misc]
            if reader.inlets:  # one was not answered at once
                break
        client.sendall((HEAD + BODY) * 9)
        assert connection.line.get_write_buffer_size() < 3 * size_bytes
        assert len(prompter.asked) == asked - 1
        assert [read_whole(client)[1] for _ in range(asked)] == [True] * (asked - 1) + [False]
        assert [read_answer(client)[0] for _ in range(9)] == [200] * 9
