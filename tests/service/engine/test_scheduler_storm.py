"""Jobs of every kind at once: each ends once and in one way, and no bound is passed."""

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
import uvloop
from hypothesis import given, settings
from hypothesis import strategies as st

from service.engine.scheduler import Scheduler
from service.errors import InvalidRequestError, UnavailableError
from service.inference import Schedule
from tests.service.engine.work import PATIENCE_S, Piece, make_lane

THREADS, MAX_REQUESTS, MAX_BYTES, MAX_ROWS = 3, 30, 100, 4


@dataclass(frozen=True)
class Order:
    """One request of the storm, and when its client leaves it."""

    lane: int
    key: str | None
    rows: int
    size_bytes: int
    schedule: Schedule
    leaves: bool
    fails: bool


ORDERS = st.lists(
    st.builds(
        Order,
        lane=st.integers(0, 3),
        key=st.sampled_from([None, "a", "b"]),
        rows=st.integers(1, 5),
        size_bytes=st.integers(0, 20),
        schedule=st.builds(
            Schedule, st.integers(0, 3), st.sampled_from([None, 0, 1, 500, 3000, 10**9])
        ),
        leaves=st.sampled_from([False, False, False, True]),
        fails=st.sampled_from([False, False, False, True]),
    ),
    max_size=60,
)


@dataclass
class Machine:
    """Runs pieces, and notes what a run may not do."""

    max_running: int | None
    joins: bool
    runs: Counter[int] = field(default_factory=Counter)
    running: int = 0
    faults: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, pieces: Sequence[Piece]) -> list[Any]:
        with self.lock:
            self.running += 1
            if self.max_running is not None and self.running > self.max_running:
                self.faults.append(f"{self.running} runs at once")
            if len(pieces) > 1 and not self.joins:
                self.faults.append("joined without a delay")
            if len(pieces) > 1 and sum(piece.rows for piece in pieces) > MAX_ROWS:
                self.faults.append("too many rows")
            if len({piece.key for piece in pieces}) > 1:
                self.faults.append("unlike keys")
        try:
            return [piece.work() for piece in pieces]
        finally:
            with self.lock:
                self.running -= 1


async def storm(orders: Sequence[Order]) -> None:
    """Send all, and hold what came of them against what was asked."""
    scheduler = Scheduler(THREADS, MAX_REQUESTS, MAX_BYTES)
    machines = [Machine(n, d > 0) for n, d in ((None, 0), (1, 0), (None, 2000), (2, 500))]
    lanes = [
        make_lane(m, MAX_ROWS, max_running=m.max_running, max_delay_us=d)
        for m, d in zip(machines, (0, 0, 2000, 500), strict=True)
    ]
    scheduler.start()
    done: Counter[int] = Counter()

    def make_work(number: int, order: Order) -> Callable[[], int]:
        def work() -> int:
            done[number] += 1
            if order.fails:
                raise InvalidRequestError(f"{number}")
            return number

        return work

    tasks = []
    for number, order in enumerate(orders):
        piece = Piece(make_work(number, order), order.size_bytes, order.rows, order.key)
        job = scheduler.submit(lanes[order.lane], piece, order.schedule)
        tasks.append(asyncio.create_task(job))
        if number % 4 == 0:
            await asyncio.sleep(0)
        if order.leaves:
            tasks[-1].cancel()
    _, left = await asyncio.wait(tasks, timeout=PATIENCE_S) if tasks else ((), set())
    assert not left
    await asyncio.to_thread(scheduler.close)
    for number, (order, task) in enumerate(zip(orders, tasks, strict=True)):
        check_outcome(order, number, task, done[number], machines[order.lane].joins)
    for lane, machine in zip(lanes, machines, strict=True):
        assert machine.faults == []
        assert (lane.waiting, lane.running, lane.head, lane.next) == (0, 0, None, None)
    assert (scheduler.waiting, scheduler._queue.size_bytes) == (0, 0)


def check_outcome(
    order: Order, number: int, task: "asyncio.Task[Any]", runs: int, joins: bool
) -> None:
    """Each ended in one way that fits, and ran as often as that says."""
    # A joined run that fails is run again, those that had been done in it too.
    most = 2 if joins else 1
    if task.cancelled():
        assert order.leaves
        assert runs <= most
        return
    error = task.exception()
    if error is None:
        assert task.result().result == number
        assert not order.fails
        assert 1 <= runs <= most
    elif isinstance(error, InvalidRequestError):
        assert order.fails
        assert str(error) == str(number)
        assert 1 <= runs <= most
    else:
        assert isinstance(error, UnavailableError)
        assert runs == 0
        if "'timeout'" in str(error):
            assert order.schedule.timeout_us


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
@given(orders=ORDERS)
@settings(max_examples=60)
def test_every_job_of_a_storm_ends_once_and_within_the_bounds(
    run: Callable[..., Any], orders: list[Order]
) -> None:
    run(storm(orders))
