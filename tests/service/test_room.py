"""The wait for room for an answer is a part of the time that a request may wait."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from service.answering import answer_v2
from service.errors import UnavailableError
from service.inference import Schedule
from service.room import wait_for_room
from service.state import State
from service.terms import Terms

SIZE_BYTES = 77
LONG_US = 60_000_000


def set_clock(monkeypatch: pytest.MonkeyPatch, *times_ns: int) -> None:
    """Let the clock show these times, one after the other."""
    monkeypatch.setattr(time, "perf_counter_ns", iter(times_ns).__next__)


def make_hold(seconds: float, taken: list[int]) -> Callable[[int], Awaitable[None]]:
    """What waits so long for room, and notes what was taken."""

    async def hold(size_bytes: int) -> None:
        if seconds:
            await asyncio.sleep(seconds)
        taken.append(size_bytes)

    return hold


@pytest.mark.parametrize("timeout_us", [None, 0, 1_000, 2**63 - 1])
async def test_where_there_is_room_all_the_time_is_left(
    monkeypatch: pytest.MonkeyPatch, timeout_us: int | None
) -> None:
    set_clock(monkeypatch, 5_000_000, 5_999_999)
    taken: list[int] = []
    schedule = Schedule(3, timeout_us)
    assert await wait_for_room(make_hold(0, taken), SIZE_BYTES, schedule) == schedule
    assert taken == [SIZE_BYTES]


@pytest.mark.parametrize(("waited_ns", "left_us"), [(7_999_999, 2_000), (9_000_000, 1)])
async def test_what_was_waited_is_no_longer_there_for_a_thread(
    monkeypatch: pytest.MonkeyPatch, waited_ns: int, left_us: int
) -> None:
    set_clock(monkeypatch, 5, 5 + waited_ns)
    left = await wait_for_room(make_hold(0, []), SIZE_BYTES, Schedule(3, 9_000))
    assert left == Schedule(3, left_us)


async def test_who_waits_too_long_is_refused_and_holds_nothing() -> None:
    taken: list[int] = []
    with pytest.raises(UnavailableError) as caught:
        await wait_for_room(make_hold(60, taken), SIZE_BYTES, Schedule(timeout_us=2_345))
    assert str(caught.value) == (
        "the request waited for room for its answer longer than the 2345 microseconds that its "
        "parameter 'timeout' allows; raise it, or try again later"
    )
    assert taken == []


async def test_without_a_timeout_it_waits_as_long_as_there_is_none() -> None:
    taken: list[int] = []
    assert await wait_for_room(make_hold(0.01, taken), SIZE_BYTES, Schedule()) == Schedule()
    assert taken == [SIZE_BYTES]


async def test_another_timeout_is_not_taken_for_its_own() -> None:
    async def hold(_: int) -> None:
        raise TimeoutError

    with pytest.raises(TimeoutError):
        await wait_for_room(hold, SIZE_BYTES, Schedule(timeout_us=LONG_US))


def write_v2(**members: Any) -> bytes:
    """A request of two items of five tokens."""
    entry = {"name": "query", "shape": [2, 5, 6], "datatype": "FP32", "data": [0.5] * 60}
    return json.dumps({"inputs": [entry]} | members).encode()


async def test_the_wait_for_room_for_an_answer_counts_as_waiting(state: State) -> None:
    async def hold(size_bytes: int) -> None:
        assert size_bytes == 4 * 4 * 2 * (5 * 6 + 3 * 5 * 5)  # the text of output and weights
        await asyncio.sleep(60)

    late = write_v2(parameters={"timeout": 1000})
    with pytest.raises(UnavailableError, match=r"^the request waited for room for its answer "):
        await answer_v2(state, state.repository.get("demo"), late, [], Terms(hold))
    assert state.statistics.read("demo", "1").failures["REJECTED"] == 1
    assert state.statistics.read("demo", "1").execution_count == 0


async def test_an_id_that_is_given_back_is_a_part_of_the_answer(state: State) -> None:
    held: list[int] = []

    async def hold(size_bytes: int) -> None:
        held.append(size_bytes)

    for identity in ("", "x" * 70_000):
        body = write_v2(id=identity, outputs=[{"name": "output"}])
        await answer_v2(state, state.repository.get("demo"), body, [], Terms(hold))
    without, beside = held
    assert beside - without == 4 * 70_000
