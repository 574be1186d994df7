"""A body from the socket into one buffer: whole, in its time, and within its bounds."""

import asyncio
import socket
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.errors import RequestTimeoutError, UnavailableError
from service.http.budget import Account, Budget
from service.http.buffer_pool import BufferPool
from service.http.inlet import STATE, Inlet, get_inlet
from tests.service.http.live_server import ask, read_answer, read_to_end, serve, wait_until
from tests.service.http.reader import Reader

KIB = 2**10
LARGE = 300 * KIB + 7  # more than uvicorn takes before it is asked for
SMALL = 40 * KIB + 3  # the kernel takes it unread, and so tells of a departure
NEXT = ask("/", b"the next")


class Flow:
    """Whether the connection is read from."""

    def __init__(self) -> None:
        self.is_paused = False

    def pause_reading(self) -> None:
        self.is_paused = True

    def resume_reading(self) -> None:
        self.is_paused = False


class Line:
    """Stands for a connection: feeds the inlet, and notes how its reading ended."""

    def __init__(self) -> None:
        self.flow = Flow()
        self.loop = asyncio.get_running_loop()
        self.reader: Any = None
        self.ends: list[bytes | None] = []
        self.calls: list[str] = []

    def divert(self, protocol: Inlet) -> None:
        self.reader = protocol

    def end_body(self, *, is_parsed: bool) -> None:
        self.reader = None
        self.ends.append(None if is_parsed else b"unparsed, whole")

    def skip_unparsed_body(self) -> None:
        self.reader = None
        self.ends.append(b"unparsed")

    def skip_body(self, data: memoryview) -> None:
        self.reader = None
        self.ends.append(bytes(data))

    def __getattr__(self, name: str) -> Any:
        return lambda *arguments: self.calls.append(" ".join([name, *map(str, arguments)]))

    async def feed(self, data: bytes, piece_bytes: int) -> bytes:
        """Write into the inlet as a transport does; returns what it did not take."""
        for _ in range(len(data)):
            if self.reader is None or self.flow.is_paused or not data:
                break
            buffer = self.reader.get_buffer(-1)
            count = min(len(buffer), piece_bytes, len(data))
            buffer[:count] = data[:count]
            self.reader.buffer_updated(count)
            data = data[count:]
            await asyncio.sleep(0)
        return data


def make_cycle(body: bytes, *, more_body: bool = True) -> Any:
    return SimpleNamespace(body=bytearray(body), more_body=more_body)


def make_inlet(line: Line, arrived: bytes, size: int, *, more_body: bool = True) -> Inlet:
    connection: Any = line
    return Inlet(connection, make_cycle(arrived, more_body=more_body), size)


def open_account(max_bytes: int = 2**20, timeout_s: float = 10) -> Account:
    return Budget("request bodies", "LIMELIGHT_X", max_bytes, 0, timeout_s).open()


def begin(inlet: Inlet, account: Account, timeout_s: float | None) -> asyncio.Task[memoryview]:
    """Begin to read a body."""
    return asyncio.create_task(inlet.read(account, timeout_s, BufferPool()))


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


def begin_early(inlet: Inlet, account: Account, arrived: bytes = b"") -> list[memoryview | None]:
    """Begin before anybody asks for the body; what there was of it at each shortage of room."""
    shortages: list[memoryview | None] = []
    inlet.begin(memoryview(arrived), account, BufferPool(), lambda: shortages.append(inlet.body))
    return shortages


def make_early(line: Line, size: int) -> Inlet:
    """An inlet of a request whose head the parser has not seen."""
    connection: Any = line
    return Inlet(connection, make_cycle(b""), size, is_parsed=False)


@pytest.mark.parametrize("arrived", [b"", b"12", b"1234567"])
async def test_a_body_may_be_read_before_anybody_asks_for_it(arrived: bytes) -> None:
    line, account = Line(), open_account()
    inlet = make_early(line, 8)
    shortages = begin_early(inlet, account, arrived)
    assert inlet.is_begun
    assert inlet.body is None
    assert await line.feed(b"12345678next"[len(arrived) :], 3) == b"next"
    assert inlet.body is not None
    assert bytes(inlet.body) == b"12345678"
    assert (line.ends, shortages, account.held_bytes) == ([b"unparsed, whole"], [], 8)
    inlet.release()
    assert (inlet.body, account.is_closed) == (None, True)


@pytest.mark.parametrize("before", range(9))
async def test_who_asks_in_the_midst_of_it_gets_all_of_it(before: int) -> None:
    line, early, late = Line(), open_account(), open_account()
    inlet = make_early(line, 8)
    begin_early(inlet, early)
    await line.feed(b"12345678"[:before], 2)
    reading = begin(inlet, late, 10)
    await asyncio.sleep(0)
    await line.feed(b"12345678"[before:], 2)
    assert bytes(await reading) == b"12345678"
    assert (early.held_bytes, early.is_whole, late.held_bytes) == (8, True, 0), "it keeps its place"
    inlet.give_back()
    assert early.is_closed
    assert line.ends == [b"unparsed, whole"]


@pytest.mark.parametrize(("arrived", "pieces"), [(b"1234", b""), (b"", b"1234"), (b"1", b"234")])
async def test_where_there_is_no_room_it_is_said_and_whoever_asks_waits(
    arrived: bytes, pieces: bytes
) -> None:
    line, budget = Line(), Budget("request bodies", "LIMELIGHT_X", 10, 0, 10)
    other = budget.open()
    assert other.try_grow(8)
    inlet = make_early(line, 8)
    shortages = begin_early(inlet, budget.open(), arrived)
    assert await line.feed(pieces, 4) == b""
    assert shortages == [None]
    reading = begin(inlet, budget.open(), 10)
    await asyncio.sleep(0.02)
    assert line.flow.is_paused
    other.close()
    await asyncio.sleep(0)
    assert await line.feed(b"5678", 4) == b""
    assert bytes(await reading) == b"12345678"


async def test_after_a_shortage_that_is_over_reading_goes_on() -> None:
    line, budget = Line(), Budget("request bodies", "LIMELIGHT_X", 10, 0, 10)
    other = budget.open()
    assert other.try_grow(8)
    inlet = make_early(line, 8)
    shortages = begin_early(inlet, budget.open())
    await line.feed(b"1234", 4)
    assert (shortages, line.flow.is_paused) == ([None], True)
    other.close()
    reading = begin(inlet, budget.open(), 10)
    await asyncio.sleep(0)
    assert not line.flow.is_paused
    await line.feed(b"5678", 4)
    assert bytes(await reading) == b"12345678"


async def test_a_whole_body_without_room_is_not_given_away() -> None:
    line, budget = Line(), Budget("request bodies", "LIMELIGHT_X", 10, 0, 10)
    other = budget.open()
    assert other.try_grow(8)
    inlet = make_early(line, 8)
    shortages = begin_early(inlet, budget.open())
    await line.feed(b"12345678", 8)
    assert (shortages, inlet.body) == ([None], None)
    other.close()
    assert bytes(await begin(inlet, budget.open(), 10)) == b"12345678"


async def test_what_is_left_of_a_body_that_nobody_wants_is_read_and_takes_no_room() -> None:
    line, account = Line(), open_account()
    inlet = make_early(line, 200_000)
    shortages = begin_early(inlet, account, b"1")
    inlet.discard()
    assert account.is_closed
    assert await line.feed(bytes(199_999) + b"next", 150_000) == b"next"
    assert (line.ends, shortages, line.flow.is_paused) == ([b"unparsed, whole"], [], False)


async def test_what_is_left_of_a_body_that_the_parser_has_not_seen_is_ignored() -> None:
    line = Line()
    inlet = make_early(line, 8)
    begin_early(inlet, open_account(), b"1")
    reading = begin(inlet, open_account(), 10)
    await asyncio.sleep(0)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert line.ends == [b"unparsed"]


async def test_a_body_that_came_with_its_head_is_taken_as_it_is() -> None:
    inlet, body = make_early(Line(), 3), memoryview(b"123")
    inlet.take_whole(body)
    assert inlet.body is body
    account = open_account()
    inlet.hold(account)
    inlet.seal()
    assert account.is_whole
    assert await begin(inlet, open_account(), 10) is body
    inlet.give_back()
    assert account.is_closed


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
