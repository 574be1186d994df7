"""What the scheduler knows of its threads: which run takes long, and how many jobs succeeded."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from service.engine.scheduler import Scheduler
from tests.service.engine.work import Gate, hold, submit


@pytest_asyncio.fixture
async def scheduler() -> AsyncIterator[Scheduler]:
    scheduler = Scheduler(2, 10, 1000)
    scheduler.start()
    yield scheduler
    await asyncio.to_thread(scheduler.close)


async def test_a_run_that_takes_long_is_found_until_it_ends(scheduler: Scheduler) -> None:
    assert scheduler.find_stuck(0) == {}
    gate = Gate()
    task = await hold(scheduler, gate)
    await asyncio.sleep(0.02)
    ((name, time_s),) = scheduler.find_stuck(0.01).items()
    assert name == "inference-0"
    assert 0.01 < time_s < 60
    assert scheduler.find_stuck(60) == {}
    gate.opened.set()
    await task
    await asyncio.to_thread(scheduler.close)  # the answer is there a little before the end
    assert scheduler.find_stuck(0) == {}


async def test_jobs_that_had_a_result_are_counted_and_others_are_not(scheduler: Scheduler) -> None:
    def fail() -> None:
        raise ValueError("broken")

    for number in (1, 2):
        await submit(scheduler, lambda: None)
        assert scheduler.succeeded == number
    with pytest.raises(ValueError, match=r"^broken$"):
        await submit(scheduler, fail)
    task = await hold(scheduler, gate := Gate())
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    gate.opened.set()
    assert scheduler.succeeded == 2
