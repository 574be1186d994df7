"""A body that is read before anybody asks for it: whole, held once, and given back."""

import asyncio
from typing import Any

import pytest

from service.http.budget import Account, Budget
from service.http.buffer_pool import BufferPool
from service.http.inlet import Inlet
from tests.service.http.inlet_line import Line, begin, make_cycle, open_account


def begin_early(inlet: Inlet, account: Account, arrived: bytes = b"") -> list[memoryview | None]:
    """Begin before anybody asks for the body; what there was of it at each shortage of room."""
    shortages: list[memoryview | None] = []
    inlet.begin(memoryview(arrived), account, BufferPool(), lambda: shortages.append(inlet.body))
    return shortages


def fill_budget() -> tuple[Budget, Account]:
    """A budget with room for 2 bytes, and the account that holds the others."""
    budget = Budget("request bodies", "LIMELIGHT_X", 10, 0, 10)
    other = budget.open()
    assert other.try_grow(8)
    return budget, other


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
    line, budget, other = Line(), *fill_budget()
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
    line, budget, other = Line(), *fill_budget()
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
    line, budget, other = Line(), *fill_budget()
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
