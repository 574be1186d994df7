"""Jobs that wait for company: how long, with whom, and that nobody pays for them."""

import asyncio
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from service.engine.scheduler import Scheduler
from service.errors import InvalidRequestError
from service.inference import Schedule
from tests.service.engine.work import (
    ANY_TIME,
    PATIENCE_S,
    Bench,
    Gate,
    Piece,
    hold,
    make_lane,
    submit,
)

MakeScheduler = Callable[..., Scheduler]
HOUR_US = 3600 * 10**6


async def test_jobs_of_one_key_are_joined_when_the_delay_has_passed(
    make_scheduler: MakeScheduler,
) -> None:
    bench = Bench()
    scheduler, lane = make_scheduler(), make_lane(bench, max_rows=9, max_delay_us=30_000)
    pieces = [Piece(partial(str, i), key=key) for i, key in enumerate("abaab")]
    started_ns = time.perf_counter_ns()
    timed = await asyncio.gather(*(scheduler.submit(lane, piece, ANY_TIME) for piece in pieces))
    assert time.perf_counter_ns() - started_ns >= 30_000_000
    assert [each.result for each in timed] == ["0", "1", "2", "3", "4"]
    assert bench.runs == [[pieces[0], pieces[2], pieces[3]], [pieces[1], pieces[4]]]
    assert all(each.queue_ns <= PATIENCE_S * 1e9 for each in timed)


async def test_a_run_that_is_full_waits_for_no_delay(make_scheduler: MakeScheduler) -> None:
    bench = Bench()
    scheduler, lane = make_scheduler(), make_lane(bench, max_rows=3, max_delay_us=HOUR_US)
    pieces = [Piece(rows=2, key="a"), Piece(rows=1, key="a")]
    jobs = asyncio.gather(*(scheduler.submit(lane, piece, ANY_TIME) for piece in pieces))
    await asyncio.wait_for(jobs, PATIENCE_S)
    assert bench.runs == [pieces]


async def test_without_a_delay_nothing_is_joined(make_scheduler: MakeScheduler, gate: Gate) -> None:
    bench = Bench()
    scheduler, lane = make_scheduler(), make_lane(bench, max_rows=9)
    held = await hold(scheduler, gate)
    pieces = [Piece(key="a") for _ in range(3)]
    jobs = asyncio.gather(*(scheduler.submit(lane, piece, ANY_TIME) for piece in pieces))
    await asyncio.sleep(0)
    gate.opened.set()
    await jobs
    await held
    assert bench.runs == [[piece] for piece in pieces]


async def test_what_waits_for_company_blocks_no_thread_and_can_leave(
    make_scheduler: MakeScheduler,
) -> None:
    bench = Bench()
    scheduler, lane = make_scheduler(), make_lane(bench, max_rows=9, max_delay_us=HOUR_US)
    waiting = asyncio.create_task(scheduler.submit(lane, Piece(key="a"), ANY_TIME))
    await asyncio.sleep(0)
    assert (scheduler.waiting, lane.waiting) == (1, 1)
    assert await submit(scheduler, lambda: "other") == "other"
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert (scheduler.waiting, lane.waiting, bench.runs) == (0, 0, [])


async def test_who_allows_less_than_the_delay_waits_half_of_that_for_company(
    make_scheduler: MakeScheduler,
) -> None:
    scheduler, lane = make_scheduler(), make_lane(max_rows=9, max_delay_us=HOUR_US)
    timeout_us = PATIENCE_S * 10**5
    job = scheduler.submit(lane, Piece(lambda: "alone", key="a"), Schedule(timeout_us=timeout_us))
    timed = await asyncio.wait_for(job, PATIENCE_S)
    assert timed.result == "alone"
    assert timeout_us * 500 <= timed.queue_ns < timeout_us * 1000


async def test_the_bad_one_of_joined_jobs_alone_gets_the_error(
    make_scheduler: MakeScheduler,
) -> None:
    def fail() -> None:
        raise InvalidRequestError("mine")

    scheduler, lane = make_scheduler(), make_lane(max_rows=3, max_delay_us=HOUR_US)
    works: list[Callable[[], Any]] = [lambda: "before", fail, lambda: "after"]
    jobs = [scheduler.submit(lane, Piece(work, key="a"), ANY_TIME) for work in works]
    before, bad, after = await asyncio.gather(*jobs, return_exceptions=True)
    assert isinstance(bad, InvalidRequestError)
    assert not isinstance(before, BaseException)
    assert not isinstance(after, BaseException)
    assert (before.result, after.result) == ("before", "after")


async def test_closing_ends_the_wait_for_company(make_scheduler: MakeScheduler) -> None:
    scheduler, lane = make_scheduler(), make_lane(max_rows=9, max_delay_us=HOUR_US)
    lonely = asyncio.create_task(scheduler.submit(lane, Piece(lambda: "lonely", key="a"), ANY_TIME))
    await asyncio.sleep(0)
    await asyncio.to_thread(scheduler.close)
    timed = await asyncio.wait_for(lonely, PATIENCE_S)
    assert timed.result == "lonely"
