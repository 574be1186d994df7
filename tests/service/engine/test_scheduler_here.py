"""A small item is computed where it came, while nothing else is to be done, and only then."""

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from service.engine.lane import Lane, go_on
from service.engine.scheduler import Scheduler
from service.errors import InvalidRequestError, UnavailableError
from tests.service.engine.work import (
    ANY_TIME,
    PATIENCE_S,
    Gate,
    Piece,
    hold,
    make_lane,
    queue,
    run_pieces,
    submit,
)

MakeScheduler = Callable[..., Scheduler]


def run_here(pieces: Sequence[Piece], check_wanted: Callable[[], None]) -> list[Any]:
    """Run pieces as while nothing else computes."""
    assert check_wanted is go_on
    return run_pieces(pieces)


def is_tiny(piece: Piece) -> bool:
    return piece.size_bytes == 1


def make_small_lane(**options: Any) -> Lane[Piece, Any]:
    """A lane whose pieces of one byte are small; no other way of running them is told apart."""
    return make_lane(is_small=is_tiny, **options)


async def compute(scheduler: Scheduler, lane: Lane[Piece, Any], piece: Piece) -> Any:
    """What a piece that is alone comes to, with the time that it waited."""
    if scheduler.is_for_here(lane, piece):
        return scheduler.run_here(lane, piece)
    return await scheduler.submit(lane, piece, ANY_TIME, is_alone=True)


async def find_thread(scheduler: Scheduler, lane: Lane[Piece, Any], **options: Any) -> str:
    """The thread in which a piece is computed."""
    timed = await compute(scheduler, lane, Piece(threading.current_thread, **options))
    return "here" if timed.result is threading.current_thread() else timed.result.name


async def test_a_small_item_that_is_alone_is_computed_here_and_waits_for_nothing(
    make_scheduler: MakeScheduler,
) -> None:
    scheduler = make_scheduler(threads=2)
    lane = make_small_lane(run_alone=run_here)
    timed = await compute(scheduler, lane, Piece(lambda: "result"))
    assert (timed.result, timed.queue_ns) == ("result", 0)
    assert await find_thread(scheduler, lane) == "here"
    assert scheduler.succeeded == 2
    assert scheduler.waiting == lane.waiting == lane.running == 0


async def test_what_is_not_small_or_waits_for_company_goes_to_a_thread(
    make_scheduler: MakeScheduler,
) -> None:
    scheduler = make_scheduler()
    assert await find_thread(scheduler, make_small_lane(), size_bytes=2) == "inference-0"
    assert await find_thread(scheduler, make_lane()) == "inference-0"
    joining = make_small_lane(max_delay_us=1000)
    assert await find_thread(scheduler, joining, key="a") == "inference-0"


async def test_what_is_handed_in_goes_to_a_thread_though_it_is_small(
    make_scheduler: MakeScheduler,
) -> None:
    thread = await submit(make_scheduler(), threading.current_thread, lane=make_small_lane())
    assert thread.name == "inference-0"


async def test_while_a_thread_works_nothing_is_computed_here(
    make_scheduler: MakeScheduler, gate: Gate
) -> None:
    scheduler, lane = make_scheduler(threads=2), make_small_lane()
    held = await hold(scheduler, gate)
    assert (await find_thread(scheduler, lane)).startswith("inference-")
    gate.opened.set()
    await held


async def test_while_others_wait_nothing_is_computed_here(
    make_scheduler: MakeScheduler, gate: Gate
) -> None:
    scheduler, narrow = make_scheduler(threads=2), make_lane(max_running=1)
    held = await hold(scheduler, gate, lane=narrow)
    waiting = await queue(scheduler, lambda: None, lane=narrow)
    assert (await find_thread(scheduler, make_small_lane())).startswith("inference-")
    gate.opened.set()
    await asyncio.gather(held, waiting)


async def test_a_scheduler_that_closed_computes_nothing_here(make_scheduler: MakeScheduler) -> None:
    scheduler = make_scheduler()
    await asyncio.to_thread(scheduler.close)
    with pytest.raises(UnavailableError, match=r"^the server is stopping$"):
        await find_thread(scheduler, make_small_lane())


async def test_a_scheduler_that_has_not_started_computes_nothing_here() -> None:
    scheduler = Scheduler(1, 10, 1000)
    waiting = asyncio.create_task(find_thread(scheduler, make_small_lane()))
    await asyncio.sleep(0.01)
    assert not waiting.done()
    scheduler.start()
    assert await waiting == "inference-0"
    await asyncio.to_thread(scheduler.close)


@pytest.mark.parametrize("error", [InvalidRequestError, RuntimeError, MemoryError])
async def test_an_error_passes_through_and_is_no_success(
    make_scheduler: MakeScheduler, error: type[Exception]
) -> None:
    scheduler, lane = make_scheduler(), make_small_lane()

    def fail() -> None:
        raise error("mine")

    with pytest.raises(error, match=r"^mine$"):
        await compute(scheduler, lane, Piece(fail))
    assert scheduler.succeeded == 0
    assert scheduler.find_stuck(0) == {}
    assert await find_thread(scheduler, lane) == "here", "the next one is computed all the same"


async def test_a_run_here_that_takes_long_is_found_from_another_thread(
    make_scheduler: MakeScheduler,
) -> None:
    scheduler, found = make_scheduler(), list[dict[str, float]]()

    def look() -> None:
        looking = threading.Thread(target=lambda: found.append(scheduler.find_stuck(0.01)))
        time.sleep(0.02)
        looking.start()
        looking.join(PATIENCE_S)

    await compute(scheduler, make_small_lane(), Piece(look))
    ((name, time_s),) = found[0].items()
    assert name == "event-loop"
    assert 0.01 < time_s < 60
    assert scheduler.find_stuck(0) == {}


async def test_a_large_item_that_is_alone_runs_as_such_and_beside_others_it_does_not(
    make_scheduler: MakeScheduler, gate: Gate
) -> None:
    scheduler, ways = make_scheduler(threads=2), list[str]()

    def run_alone(pieces: Sequence[Piece], _: Callable[[], None]) -> list[Any]:
        ways.append("alone")
        return run_pieces(pieces)

    def run_beside(pieces: Sequence[Piece]) -> list[Any]:
        ways.append("beside")
        return run_pieces(pieces)

    lane = make_lane(run_beside, run_alone=run_alone)
    for is_alone in (True, False):
        await scheduler.submit(lane, Piece(), ANY_TIME, is_alone=is_alone)
    assert ways == ["alone", "beside"]
    held = await hold(scheduler, gate)
    await scheduler.submit(lane, Piece(), ANY_TIME, is_alone=True)
    assert ways == ["alone", "beside", "beside"]
    gate.opened.set()
    await held
