"""A body from the socket into one buffer: whole, in its time, and within its bounds."""

import asyncio
import socket
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.errors import RequestTimeoutError, UnavailableError
from service.http.budget import Budget
from service.http.inlet import STATE, get_inlet
from tests.service.http.inlet_line import Line, begin, make_inlet, open_account
from tests.service.http.live_server import ask, read_answer, read_to_end, serve, wait_until
from tests.service.http.reader import Reader

KIB = 2**10
LARGE = 300 * KIB + 7  # more than uvicorn takes before it is asked for
SMALL = 40 * KIB + 3  # the kernel takes it unread, and so tells of a departure
NEXT = ask("/", b"the next")


@given(st.data())
async def test_a_body_is_what_was_sent_however_it_comes(data: st.DataObject) -> None:
    sent = np.random.default_rng(3).bytes(data.draw(st.integers(1, 900)))
    arrived = data.draw(st.integers(0, len(sent)))
    piece_bytes = data.draw(st.integers(1, 300))
    line, account = Line(), open_account()
    is_whole = arrived == len(sent)
    inlet = make_inlet(line, sent[:arrived], len(sent), more_body=not is_whole)
    reading = begin(inlet, account, 10)
    await asyncio.sleep(0)
    behind = await line.feed(sent[arrived:] + b"next", piece_bytes)
    assert bytes(await reading) == sent
    assert behind == b"next"
    assert line.ends == ([] if is_whole else [None])
    assert (account.held_bytes, account.is_whole) == (len(sent), True)


async def test_a_body_waits_for_room_unread_and_that_is_not_its_clients_time() -> None:
    line, budget = Line(), Budget("request bodies", "LIMELIGHT_X", 10, 0, 10)
    other = budget.open()
    assert other.try_grow(7)
    account = budget.open()
    reading = begin(make_inlet(line, b"", 8), account, 0.05)
    await asyncio.sleep(0)
    behind = await line.feed(b"12345678", 4)
    assert behind == b"5678", "nothing more is read meanwhile"
    await asyncio.sleep(0.1)
    assert not reading.done()
    other.close()
    await asyncio.sleep(0)
    assert await line.feed(behind, 4) == b""
    assert bytes(await reading) == b"12345678"
    assert account.held_bytes == 8


@pytest.mark.parametrize("arrived", [b"", b"12345678"])
async def test_a_body_that_is_whole_waits_for_room_too(arrived: bytes) -> None:
    line, budget = Line(), Budget("request bodies", "LIMELIGHT_X", 10, 0, 10)
    other = budget.open()
    assert other.try_grow(7)
    account = budget.open()
    inlet = make_inlet(line, arrived, 8, more_body=not arrived)
    reading = begin(inlet, account, 10)
    await asyncio.sleep(0)
    await line.feed(b"12345678"[len(arrived) :], 8)
    await asyncio.sleep(0.02)
    assert not reading.done()
    other.close()
    assert bytes(await reading) == b"12345678"
    assert account.is_whole


@pytest.mark.parametrize(("arrived", "came"), [(b"", b"123"), (b"12", b"345"), (b"1", b"")])
async def test_a_body_without_room_is_503_and_what_came_is_given_to_the_parser(
    arrived: bytes, came: bytes
) -> None:
    line, budget = Line(), Budget("request bodies", "LIMELIGHT_X", 10, 0, 0)
    assert budget.open().try_grow(10)
    reading = begin(make_inlet(line, arrived, 8), budget.open(), 10)
    await asyncio.sleep(0)
    await line.feed(came, 8)
    size = len(arrived or came)
    with pytest.raises(UnavailableError) as caught:
        await reading
    assert str(caught.value) == (
        f"10 bytes of request bodies are held already, no room for {size} more within 10 "
        "(LIMELIGHT_X) after 0 s; try again later"
    )
    assert line.ends == [b"" if arrived else came], "the parser knows what had arrived"


async def test_a_body_that_does_not_come_in_time_is_408() -> None:
    line = Line()
    reading = begin(make_inlet(line, b"12", 8), open_account(), 0.05)
    await asyncio.sleep(0)
    await line.feed(b"345", 1)
    with pytest.raises(RequestTimeoutError) as caught:
        await reading
    assert str(caught.value) == (
        "5 bytes of the request body came within 0.05 s, expected all of it "
        "(LIMELIGHT_BODY_TIMEOUT_S)"
    )
    assert line.ends == [b"345"]


async def test_a_body_may_take_any_time_where_none_is_set() -> None:
    line = Line()
    reading = begin(make_inlet(line, b"", 3), open_account(), None)
    await asyncio.sleep(0.05)
    await line.feed(b"123", 3)
    assert bytes(await reading) == b"123"


async def test_a_request_that_is_cancelled_reads_no_more() -> None:
    line = Line()
    reading = begin(make_inlet(line, b"1", 8), open_account(), 10)
    await asyncio.sleep(0)
    await line.feed(b"23", 2)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert line.ends == [b"23"]


async def test_what_the_transport_says_meanwhile_reaches_the_connection() -> None:
    line = Line()
    inlet = make_inlet(line, b"", 8)
    reading = begin(inlet, open_account(), 10)
    await asyncio.sleep(0)
    inlet.pause_writing()
    inlet.resume_writing()
    inlet.eof_received()
    inlet.connection_lost(None)
    assert line.calls == ["pause_writing", "resume_writing", "eof_received", "connection_lost None"]
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert line.ends == [], "nothing is read behind the end of a connection"


@pytest.mark.parametrize("state", [{}, {"state": {}}, {"state": {STATE: "another"}}])
def test_a_request_may_have_no_inlet(state: dict[str, Any]) -> None:
    assert get_inlet(state) is None


@pytest.mark.parametrize("came", [1, 1000, LARGE - 1])
def test_a_body_that_stops_is_408_and_the_connection_is_closed(came: int) -> None:
    reader = Reader(body_timeout_s=0.3)
    request = ask("/", bytes(LARGE))
    with serve(reader) as server, server.connect() as client:
        client.sendall(request[: came - LARGE])
        status, headers, text = read_answer(client)
        assert (status, headers["connection"]) == (408, "close")
        assert text.startswith(b'{"error":"%d bytes of the request body came within 0.3 s' % came)
        client.sendall(request[came - LARGE :] + NEXT)
        assert read_to_end(client) == b"", "the rest is thrown away"
    assert len(reader.inlets) == 1
    assert reader.holdings.bodies.in_use_bytes == 0


@pytest.mark.parametrize("came", [1, 1000, LARGE - 1, LARGE])
def test_a_body_without_room_is_503_and_the_next_request_is_answered(came: int) -> None:
    reader = Reader(body_timeout_s=0.3, max_body_bytes_in_flight=100)
    request = ask("/", bytes(LARGE))
    with serve(reader) as server, server.connect() as client:
        with reader.holdings.bodies.open() as other:
            assert other.try_grow(100)
            other.seal()
            client.sendall(request[: len(request) - LARGE + came])
            status, headers, text = read_answer(client)
        assert (status, headers["retry-after"]) == (503, "1")
        assert text.startswith(b'{"error":"100 bytes of request bodies are held already, no room')
        client.sendall(request[len(request) - LARGE + came :] + NEXT + NEXT)
        assert [read_answer(client)[::2] for _ in range(2)] == [(200, b"8")] * 2
    assert reader.bodies == [b"the next"] * 2
    assert reader.holdings.bodies.in_use_bytes == 0


def test_bodies_that_wait_for_each_other_all_come_to_their_end() -> None:
    """More than there is room for, all of them half sent before any is whole."""
    reader = Reader(max_body_bytes_in_flight=LARGE, body_timeout_s=20)
    bodies = [np.random.default_rng(seed).bytes(LARGE) for seed in range(4)]
    with serve(reader) as server:
        clients = [server.connect() for _ in bodies]
        for client, body in zip(clients, bodies, strict=True):
            client.sendall(ask("/", body)[: -LARGE // 2])
        wait_until(lambda: reader.holdings.bodies.waiting > 0)
        for client, body in zip(clients, bodies, strict=True):
            client.sendall(ask("/", body)[-LARGE // 2 :])
        assert [read_answer(client)[0] for client in clients] == [200] * len(bodies)
        for client in clients:
            client.close()
    assert sorted(reader.bodies) == sorted(bodies)
    assert reader.holdings.bodies.in_use_bytes == 0


def test_who_leaves_while_a_body_waits_for_room_gives_back_its_part() -> None:
    reader = Reader(max_body_bytes_in_flight=SMALL, body_timeout_s=20)
    with serve(reader) as server, reader.holdings.bodies.open() as other:
        assert other.try_grow(SMALL)
        other.seal()
        with server.connect() as client:
            client.sendall(ask("/", bytes(SMALL))[:-2])
            wait_until(lambda: reader.holdings.bodies.waiting == 1)
        wait_until(lambda: server.connections == 0)
        wait_until(lambda: reader.errors == ["the client left before its answer was ready"])
        assert reader.holdings.bodies.waiting == 0
        assert reader.holdings.bodies.in_use_bytes == SMALL


def test_a_body_behind_an_answer_that_nobody_reads_is_read() -> None:
    """Requests sent ahead: each body is read in its turn."""
    reader, bodies = (
        Reader(),
        [np.random.default_rng(seed).bytes(LARGE + seed) for seed in range(5)],
    )
    with serve(reader) as server, server.connect() as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        client.sendall(b"".join(ask("/", body) for body in bodies))
        time.sleep(0.05)
        texts = [read_answer(client)[2] for _ in bodies]
    assert texts == [str(len(body)).encode() for body in bodies]
    assert reader.bodies == bodies
