"""A timeout: to the moment, on every event loop, and only for what waits."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest
import uvloop

from service.engine.scheduler import Scheduler
from service.errors import UnavailableError
from service.inference import Schedule
from tests.service.engine.work import PATIENCE_S, Gate, hold, queue, submit

MakeScheduler = Callable[..., Scheduler]
HOUR_US = 3600 * 10**6


async def test_a_timeout_ends_the_wait_at_once_though_no_thread_is_free(
    make_scheduler: MakeScheduler, gate: Gate
) -> None:
    scheduler, ran = make_scheduler(), list[str]()
    held = await hold(scheduler, gate)
    late = await queue(scheduler, lambda: ran.append("late"), schedule=Schedule(timeout_us=5000))
    with pytest.raises(UnavailableError, match=r"longer than the 5000 microseconds"):
        await asyncio.wait_for(late, PATIENCE_S)
    assert scheduler.waiting == 0
    assert not held.done()
    gate.opened.set()
    await held
    await submit(scheduler, lambda: None)
    assert ran == []


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
@pytest.mark.parametrize("timeout_us", [1, 300, 2000])
def test_no_timeout_ends_early_on_any_loop(
    make_scheduler: MakeScheduler, gate: Gate, run: Callable[..., Any], timeout_us: int
) -> None:
    """A timer of a busy uvloop may be a millisecond early, one of half a millisecond is none."""

    async def stay_busy() -> None:
        while True:  # noqa: ASYNC110
            await asyncio.sleep(0)

    async def measure(scheduler: Scheduler) -> int:
        started_ns = time.perf_counter_ns()
        with pytest.raises(UnavailableError, match="'timeout'"):
            await submit(scheduler, lambda: None, schedule=Schedule(timeout_us=timeout_us))
        return time.perf_counter_ns() - started_ns

    async def find_shortest() -> int:
        scheduler = make_scheduler()
        held = await hold(scheduler, gate)
        busy = asyncio.create_task(stay_busy())
        waited_ns = [await measure(scheduler) for _ in range(10)]
        busy.cancel()
        gate.opened.set()
        await held
        return min(waited_ns)

    assert run(find_shortest()) >= 1000 * timeout_us


@pytest.mark.parametrize("timeout_us", [None, 0, HOUR_US, 2**64 - 1])
async def test_a_timeout_that_is_none_or_not_reached_changes_nothing(
    make_scheduler: MakeScheduler, gate: Gate, timeout_us: int | None
) -> None:
    scheduler = make_scheduler()
    held = await hold(scheduler, gate)
    schedule = Schedule(timeout_us=timeout_us)
    task = await queue(scheduler, lambda: "in time", schedule=schedule)
    gate.opened.set()
    assert await task == "in time"
    await held


async def test_a_timeout_does_not_end_what_runs(make_scheduler: MakeScheduler, gate: Gate) -> None:
    scheduler = make_scheduler()
    held = await hold(scheduler, gate, schedule=Schedule(timeout_us=500_000))
    await asyncio.sleep(0.6)
    assert not held.done()
    gate.opened.set()
    assert await held == "passed"
