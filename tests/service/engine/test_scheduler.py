"""Threads that compute: in order, within bounds, and none of them ends for one bad job."""

import asyncio
import threading
import weakref
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from service.engine.scheduler import Scheduler
from service.errors import InvalidRequestError, UnavailableError

PATIENCE_S = 10
MakeScheduler = Callable[..., Scheduler]


class Gate:
    """Work that says when it runs, and ends when it is told to."""

    def __init__(self) -> None:
        self.started = threading.Event()
        self.opened = threading.Event()

    def __call__(self) -> str:
        self.started.set()
        assert self.opened.wait(PATIENCE_S)
        return "passed"

    async def wait_until_started(self) -> None:
        assert await asyncio.to_thread(self.started.wait, PATIENCE_S)


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.fixture
def make_scheduler(gate: Gate) -> Iterator[MakeScheduler]:
    """Builds schedulers whose threads run; their threads end with the test."""
    schedulers: list[Scheduler] = []

    def make(threads: int = 1, max_requests: int = 100, max_bytes: int = 1000) -> Scheduler:
        scheduler = Scheduler(threads, max_requests, max_bytes)
        scheduler.start()
        schedulers.append(scheduler)
        return scheduler

    yield make
    gate.opened.set()
    for scheduler in schedulers:
        scheduler.close()


async def hold(scheduler: Scheduler, gate: Gate) -> asyncio.Task[Any]:
    """Occupy the only thread."""
    task = asyncio.create_task(scheduler.submit(gate, 1))
    await gate.wait_until_started()
    return task


async def queue(scheduler: Scheduler, work: Callable[[], Any], size_bytes: int = 1) -> Any:
    """Submit a job and come back as soon as it waits."""
    before = scheduler.waiting
    task = asyncio.create_task(scheduler.submit(work, size_bytes))
    await asyncio.sleep(0)  # the task's first turn puts the job into the queue
    assert scheduler.waiting == before + 1
    return task


async def test_a_result_comes_back_with_its_times(make_scheduler: MakeScheduler) -> None:
    timed = await make_scheduler().submit(lambda: "result", 5)
    assert timed.result == "result"
    assert timed.queue_ms >= 0
    assert timed.compute_ms >= 0


async def test_work_runs_beside_the_event_loop(make_scheduler: MakeScheduler) -> None:
    timed = await make_scheduler().submit(threading.current_thread, 1)
    assert timed.result is not threading.current_thread()
    assert timed.result.name == "inference-0"


async def test_jobs_run_first_in_first_out(make_scheduler: MakeScheduler, gate: Gate) -> None:
    scheduler, order = make_scheduler(), list[int]()
    held = await hold(scheduler, gate)
    tasks = [await queue(scheduler, partial(order.append, i)) for i in range(20)]
    assert scheduler.waiting == 20
    gate.opened.set()
    await asyncio.gather(held, *tasks)
    assert order == list(range(20))
    assert scheduler.waiting == 0


async def test_as_many_jobs_run_at_the_same_time_as_there_are_threads(
    make_scheduler: MakeScheduler,
) -> None:
    scheduler, together = make_scheduler(threads=3), threading.Barrier(3)
    jobs = [scheduler.submit(lambda: together.wait(PATIENCE_S), 1) for _ in range(3)]
    places = [timed.result for timed in await asyncio.gather(*jobs)]
    assert sorted(places) == [0, 1, 2]


async def test_a_queue_full_by_count_refuses(make_scheduler: MakeScheduler, gate: Gate) -> None:
    scheduler = make_scheduler(max_requests=2)
    held = await hold(scheduler, gate)
    tasks = [await queue(scheduler, lambda: None) for _ in range(2)]
    with pytest.raises(UnavailableError) as caught:
        await scheduler.submit(lambda: None, 1)
    assert str(caught.value) == (
        "2 requests are waiting already, expected fewer than 2 (LIMELIGHT_MAX_QUEUE_REQUESTS); "
        "try again later"
    )
    gate.opened.set()
    await asyncio.gather(held, *tasks)
    await scheduler.submit(lambda: None, 1)


async def test_a_queue_full_by_bytes_refuses(make_scheduler: MakeScheduler, gate: Gate) -> None:
    scheduler = make_scheduler(max_bytes=1000)
    held = await hold(scheduler, gate)
    tasks = [await queue(scheduler, lambda: None, size) for size in (600, 400)]
    with pytest.raises(UnavailableError) as caught:
        await scheduler.submit(lambda: None, 7)
    assert str(caught.value) == (
        "1000 bytes are waiting already, no room for 7 more within 1000 "
        "(LIMELIGHT_MAX_QUEUE_BYTES); try again later"
    )
    gate.opened.set()
    await asyncio.gather(held, *tasks)
    held = await hold(scheduler, another := Gate())
    task = await queue(scheduler, lambda: None, 1000)
    another.opened.set()
    await asyncio.gather(held, task)


async def test_a_job_larger_than_the_bound_may_wait_alone(
    make_scheduler: MakeScheduler, gate: Gate
) -> None:
    scheduler = make_scheduler(max_bytes=1000)
    held = await hold(scheduler, gate)
    large = await queue(scheduler, lambda: "large", 5000)
    with pytest.raises(UnavailableError, match=r"^5000 bytes are waiting already"):
        await scheduler.submit(lambda: None, 0)
    gate.opened.set()
    assert (await held).result == "passed"
    assert (await large).result == "large"


async def test_a_client_that_left_costs_no_compute(
    make_scheduler: MakeScheduler, gate: Gate
) -> None:
    scheduler, ran = make_scheduler(), list[str]()
    held = await hold(scheduler, gate)
    left = await queue(scheduler, lambda: ran.append("left"))
    stayed = await queue(scheduler, lambda: ran.append("stayed"))
    left.cancel()
    with pytest.raises(asyncio.CancelledError):
        await left
    gate.opened.set()
    await asyncio.gather(held, stayed)
    assert ran == ["stayed"]
    assert scheduler.waiting == 0


async def test_a_client_that_leaves_while_its_job_runs_breaks_nothing(
    make_scheduler: MakeScheduler, gate: Gate
) -> None:
    scheduler = make_scheduler()
    held = await hold(scheduler, gate)
    held.cancel()
    with pytest.raises(asyncio.CancelledError):
        await held
    gate.opened.set()
    assert (await scheduler.submit(lambda: "next", 1)).result == "next"


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
    assert [(await task).result for task in (held, before, after)] == ["passed", "before", "after"]


async def test_closing_finishes_what_waits_and_takes_no_more(
    make_scheduler: MakeScheduler, gate: Gate
) -> None:
    scheduler = make_scheduler()
    held = await hold(scheduler, gate)
    waiting = [await queue(scheduler, partial(int, i)) for i in range(3)]
    closing = asyncio.create_task(asyncio.to_thread(scheduler.close))
    refused = ""
    while not refused:  # until the closing thread has said so
        try:
            extra = asyncio.create_task(scheduler.submit(lambda: None, 1))
            await asyncio.wait([extra], timeout=0.01)
            if extra.done():
                extra.result()
        except UnavailableError as error:
            refused = str(error)
    assert refused == "the server is stopping"
    gate.opened.set()
    await closing
    assert [(await task).result for task in (held, *waiting)] == ["passed", 0, 1, 2]


async def test_idle_threads_end_at_once(make_scheduler: MakeScheduler) -> None:
    scheduler = make_scheduler(threads=4)
    await asyncio.to_thread(scheduler.close)
    with pytest.raises(UnavailableError, match=r"^the server is stopping$"):
        await scheduler.submit(lambda: None, 1)


async def test_a_loop_that_ended_early_does_not_end_the_thread(
    make_scheduler: MakeScheduler, gate: Gate
) -> None:
    scheduler = make_scheduler()

    def run_a_loop_that_ends() -> None:
        async def leave() -> None:
            task = asyncio.create_task(scheduler.submit(gate, 1))
            await gate.wait_until_started()
            task.cancel()

        asyncio.run(leave())

    await asyncio.to_thread(run_a_loop_that_ends)
    gate.opened.set()
    assert (await scheduler.submit(lambda: "next", 1)).result == "next"


async def test_an_idle_thread_keeps_nothing_of_its_last_job(
    make_scheduler: MakeScheduler,
) -> None:
    class Tensor:
        """Stands for the arrays of a request."""

    tensor, freed = Tensor(), threading.Event()
    weakref.finalize(tensor, freed.set)
    await make_scheduler().submit(partial(id, tensor), 1)
    del tensor
    assert await asyncio.to_thread(freed.wait, PATIENCE_S)
