"""Threads that compute: in order, within bounds, and none of them ends for one bad job."""

import asyncio
import threading
from collections.abc import Callable
from functools import partial

import pytest

from service.engine.scheduler import Scheduler
from service.errors import InvalidRequestError, UnavailableError
from service.inference import Schedule
from tests.service.engine.work import (
    ANY_TIME,
    PATIENCE_S,
    Gate,
    Piece,
    hold,
    make_lane,
    queue,
    submit,
)

MakeScheduler = Callable[..., Scheduler]
HOUR_US = 3600 * 10**6


async def test_a_result_comes_back_with_its_time_in_the_queue(
    make_scheduler: MakeScheduler,
) -> None:
    timed = await make_scheduler().submit(make_lane(), Piece(lambda: "result"), ANY_TIME)
    assert timed.result == "result"
    assert 0 <= timed.queue_ns < PATIENCE_S * 1e9


async def test_work_runs_beside_the_event_loop(make_scheduler: MakeScheduler) -> None:
    thread = await submit(make_scheduler(), threading.current_thread)
    assert thread is not threading.current_thread()
    assert thread.name == "inference-0"


async def test_jobs_run_first_in_first_out(make_scheduler: MakeScheduler, gate: Gate) -> None:
    scheduler, order = make_scheduler(), list[int]()
    held = await hold(scheduler, gate)
    tasks = [await queue(scheduler, partial(order.append, i)) for i in range(20)]
    assert scheduler.waiting == 20
    gate.opened.set()
    await asyncio.gather(held, *tasks)
    assert order == list(range(20))
    assert scheduler.waiting == 0


async def test_priority_1_runs_first_and_0_last(make_scheduler: MakeScheduler, gate: Gate) -> None:
    scheduler, order = make_scheduler(), list[int]()
    held = await hold(scheduler, gate)
    tasks = [
        await queue(scheduler, partial(order.append, i), schedule=Schedule(priority))
        for i, priority in enumerate((0, 7, 1, 0, 2, 1))
    ]
    gate.opened.set()
    await asyncio.gather(held, *tasks)
    assert order == [2, 5, 4, 1, 0, 3]


async def test_as_many_jobs_run_at_the_same_time_as_there_are_threads(
    make_scheduler: MakeScheduler,
) -> None:
    scheduler, together = make_scheduler(threads=3), threading.Barrier(3)
    jobs = [submit(scheduler, lambda: together.wait(PATIENCE_S)) for _ in range(3)]
    assert sorted(await asyncio.gather(*jobs)) == [0, 1, 2]


async def test_a_job_may_be_queued_now_and_waited_for_later(make_scheduler: MakeScheduler) -> None:
    scheduler = make_scheduler()
    _, outcome = scheduler.enqueue(make_lane(), Piece(lambda: "result"), ANY_TIME)
    assert not outcome.done()
    assert (await outcome).result == "result"


async def test_a_job_that_waits_may_be_withdrawn_and_one_that_runs_may_not(
    make_scheduler: MakeScheduler, gate: Gate
) -> None:
    scheduler, ran = make_scheduler(), list[int]()
    held = await hold(scheduler, gate)
    job, outcome = scheduler.enqueue(make_lane(), Piece(partial(ran.append, 1)), ANY_TIME)
    assert scheduler.withdraw(job)
    assert not scheduler.withdraw(job)
    gate.opened.set()
    await held
    await submit(scheduler, lambda: None)
    assert (ran, outcome.done()) == ([], False)


async def test_there_is_room_while_a_thread_idles_or_the_queue_has_some(
    make_scheduler: MakeScheduler, gate: Gate
) -> None:
    scheduler = make_scheduler(max_requests=1)
    assert scheduler.has_room()
    held = await hold(scheduler, gate)
    assert scheduler.has_room()
    waiting = await queue(scheduler, lambda: None)
    assert not scheduler.has_room()
    gate.opened.set()
    await asyncio.gather(held, waiting)
    assert scheduler.has_room()


async def test_a_full_queue_refuses_and_takes_more_when_it_is_not(
    make_scheduler: MakeScheduler, gate: Gate
) -> None:
    scheduler = make_scheduler(max_requests=2)
    held = await hold(scheduler, gate)
    tasks = [await queue(scheduler, lambda: None) for _ in range(2)]
    with pytest.raises(UnavailableError, match=r"^2 requests are waiting already"):
        await submit(scheduler, lambda: None)
    with pytest.raises(UnavailableError, match=r"^2 requests are waiting already"):
        scheduler.check_room()
    gate.opened.set()
    await asyncio.gather(held, *tasks)
    scheduler.check_room()
    await submit(scheduler, lambda: None)


async def test_where_a_thread_idles_there_is_room_whatever_waits(
    make_scheduler: MakeScheduler, gate: Gate
) -> None:
    scheduler = make_scheduler(threads=2, max_requests=1)
    lane = make_lane(max_running=1)
    held = await hold(scheduler, gate, lane=lane)
    waiting = await queue(scheduler, lambda: None, lane=lane)
    scheduler.check_room()
    gate.opened.set()
    await asyncio.gather(held, waiting)


async def test_a_client_that_left_costs_no_compute_and_no_place(
    make_scheduler: MakeScheduler, gate: Gate
) -> None:
    scheduler, ran, lane = make_scheduler(max_bytes=10), list[str](), make_lane()
    held = await hold(scheduler, gate)
    left = await queue(scheduler, lambda: ran.append("left"), size_bytes=10, lane=lane)
    left.cancel()
    with pytest.raises(asyncio.CancelledError):
        await left
    assert (scheduler.waiting, lane.waiting) == (0, 0)
    stayed = await queue(scheduler, lambda: ran.append("stayed"), size_bytes=10)
    gate.opened.set()
    await asyncio.gather(held, stayed)
    assert ran == ["stayed"]


async def test_a_client_that_leaves_while_its_job_runs_breaks_nothing(
    make_scheduler: MakeScheduler, gate: Gate
) -> None:
    scheduler = make_scheduler()
    held = await hold(scheduler, gate)
    held.cancel()
    with pytest.raises(asyncio.CancelledError):
        await held
    gate.opened.set()
    assert await submit(scheduler, lambda: "next") == "next"


async def test_a_lane_runs_no_more_than_its_instances_while_others_overtake(
    make_scheduler: MakeScheduler, gate: Gate
) -> None:
    scheduler, lane, ran = make_scheduler(threads=3), make_lane(max_running=1), list[str]()
    held = await hold(scheduler, gate, lane=lane)
    second = await queue(scheduler, lambda: ran.append("second"), lane=lane)
    await submit(scheduler, lambda: ran.append("other"))
    assert (ran, lane.running, lane.waiting) == (["other"], 1, 1)
    gate.opened.set()
    await asyncio.gather(held, second)
    assert ran == ["other", "second"]


@pytest.mark.parametrize("error", [InvalidRequestError, RuntimeError, MemoryError, SystemError])
async def test_an_error_reaches_its_caller_alone_and_the_thread_lives_on(
    make_scheduler: MakeScheduler, gate: Gate, error: type[Exception]
) -> None:
    scheduler = make_scheduler()
    held = await hold(scheduler, gate)

    def fail() -> None:
        raise error("mine")

    before, bad, after = (
        await queue(scheduler, lambda: "before"),
        await queue(scheduler, fail),
        await queue(scheduler, lambda: "after"),
    )
    gate.opened.set()
    with pytest.raises(error, match=r"^mine$"):
        await bad
    assert [await task for task in (held, before, after)] == ["passed", "before", "after"]


async def test_closing_finishes_what_waits_and_takes_no_more(
    make_scheduler: MakeScheduler, gate: Gate
) -> None:
    scheduler = make_scheduler(threads=2)
    narrow = make_lane(max_running=1)
    joining = make_lane(max_rows=9, max_delay_us=HOUR_US)
    held = await hold(scheduler, gate, lane=narrow)
    waiting = [await queue(scheduler, partial(int, i), lane=narrow) for i in range(3)]
    lonely = asyncio.create_task(scheduler.submit(joining, Piece(lambda: 3, key="a"), ANY_TIME))
    await asyncio.sleep(0)
    closing = asyncio.create_task(asyncio.to_thread(scheduler.close))
    refused = ""
    while not refused:  # until the closing thread has said so
        try:
            await asyncio.wait_for(submit(scheduler, lambda: None), 0.05)
        except UnavailableError as error:
            refused = str(error)
        except TimeoutError:
            continue
    assert refused == "the server is stopping"
    gate.opened.set()
    await closing
    assert [await task for task in (held, *waiting)] == ["passed", 0, 1, 2]
    assert (await lonely).result == 3


async def test_closing_ends_though_the_last_that_waited_left(
    make_scheduler: MakeScheduler, gate: Gate
) -> None:
    scheduler, lane = make_scheduler(threads=2), make_lane(max_running=1)
    held = await hold(scheduler, gate, lane=lane)
    last = await queue(scheduler, lambda: None, lane=lane)
    closing = asyncio.create_task(asyncio.to_thread(scheduler.close))
    await asyncio.sleep(0.01)
    last.cancel()
    gate.opened.set()
    await asyncio.wait_for(closing, PATIENCE_S)
    assert await held == "passed"


async def test_idle_threads_end_at_once(make_scheduler: MakeScheduler) -> None:
    scheduler = make_scheduler(threads=4)
    await asyncio.to_thread(scheduler.close)
    with pytest.raises(UnavailableError, match=r"^the server is stopping$"):
        await submit(scheduler, lambda: None)


async def test_a_loop_that_ended_early_does_not_end_the_thread(
    make_scheduler: MakeScheduler, gate: Gate
) -> None:
    scheduler = make_scheduler()

    def run_a_loop_that_ends() -> None:
        async def leave() -> None:
            task = asyncio.create_task(submit(scheduler, gate))
            await gate.wait_until_started()
            task.cancel()

        asyncio.run(leave())

    await asyncio.to_thread(run_a_loop_that_ends)
    gate.opened.set()
    assert await submit(scheduler, lambda: "next") == "next"
