"""Nothing is left of a job once its outcome is dropped: no tensor, and no model."""

import asyncio
import gc
import threading
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import uvloop

from service.engine.scheduler import Scheduler
from service.errors import InvalidRequestError, UnavailableError
from service.inference import Schedule
from tests.service.engine.work import PATIENCE_S, Gate, Piece, hold, make_lane

MakeScheduler = Callable[..., Scheduler]
HOUR_US = 3600 * 10**6


def fail() -> None:
    """Work that cannot be done."""
    raise InvalidRequestError("mine")


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
@pytest.mark.parametrize("work", [lambda: "done", fail])
@pytest.mark.parametrize("timeout_us", [None, HOUR_US])
@pytest.mark.parametrize("max_delay_us", [0, 1000])
def test_nothing_is_left_of_a_job_and_its_lane_once_it_is_answered(
    make_scheduler: MakeScheduler,
    run: Callable[..., Any],
    work: Callable[[], Any],
    timeout_us: int | None,
    max_delay_us: int,
) -> None:
    freed = [threading.Event(), threading.Event()]
    scheduler = make_scheduler()

    async def ask() -> None:
        lane, piece = make_lane(max_delay_us=max_delay_us), Piece(work, key="a")
        for thing, event in zip((lane, piece), freed, strict=True):
            weakref.finalize(thing, event.set)
        try:
            await scheduler.submit(lane, piece, Schedule(timeout_us=timeout_us))
        except InvalidRequestError as error:
            assert str(error) == "mine"  # noqa: PT017

    async def ask_and_look() -> None:
        await ask()
        for event in freed:
            assert await asyncio.to_thread(event.wait, PATIENCE_S)

    gc.disable()  # so that a circle of references would stay
    try:
        run(ask_and_look())
    finally:
        gc.enable()


@pytest.mark.parametrize("timeout_us", [1000, None])
async def test_nothing_is_left_of_a_job_that_was_late_or_whose_client_left(
    make_scheduler: MakeScheduler, gate: Gate, timeout_us: int | None
) -> None:
    scheduler, freed = make_scheduler(), threading.Event()
    held = await hold(scheduler, gate)

    async def ask() -> None:
        piece = Piece()
        weakref.finalize(piece, freed.set)
        job = scheduler.submit(make_lane(), piece, Schedule(timeout_us=timeout_us))
        task = asyncio.create_task(job)
        if timeout_us is None:
            await asyncio.sleep(0)
            task.cancel()
        await asyncio.wait([task], timeout=PATIENCE_S)
        assert task.cancelled() or isinstance(task.exception(), UnavailableError)

    gc.disable()
    try:
        await ask()
        assert await asyncio.to_thread(freed.wait, PATIENCE_S)
    finally:
        gc.enable()
    gate.opened.set()
    await held
