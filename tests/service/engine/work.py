"""Work for the scheduler's tests: items of any size, and runs that end when they are told to."""

import asyncio
import threading
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from service.engine.job import Job
from service.engine.lane import Lane
from service.engine.scheduler import Scheduler
from service.inference import Schedule

PATIENCE_S: Final = 10
ANY_TIME: Final = Schedule()


@dataclass(eq=False)
class Piece:
    """An item: what to call, and what the queue is told of it."""

    work: Callable[[], Any] = lambda: None
    size_bytes: int = 1
    rows: int = 1
    key: Hashable | None = None


@dataclass(eq=False)
class Bench:
    """Runs pieces one after the other, and notes which ran together."""

    runs: list[list[Piece]] = field(default_factory=list)

    def __call__(self, pieces: Sequence[Piece]) -> list[Any]:
        self.runs.append(list(pieces))
        return [piece.work() for piece in pieces]


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


def run_pieces(pieces: Sequence[Piece]) -> list[Any]:
    """Run pieces one after the other."""
    return [piece.work() for piece in pieces]


def make_lane(
    run: Callable[[Sequence[Piece]], Sequence[Any]] = run_pieces, max_rows: int = 4, **limits: Any
) -> Lane[Piece, Any]:
    """A lane of pieces; those with equal keys may be joined. Its runs are never given up."""
    return Lane(
        lambda pieces, _: run(pieces), lambda piece: piece.key, lambda piece: max_rows, **limits
    )


class Loop:
    """Stands for an event loop: calls at once, or notes that it is closed."""

    def __init__(self, *, is_closed: bool = False) -> None:
        self.is_closed = is_closed

    def call_soon_threadsafe(self, call: Callable[..., object], *arguments: object) -> None:
        if self.is_closed:
            raise RuntimeError("Event loop is closed")
        call(*arguments)


def make_job(
    lane: Lane[Piece, Any],
    number: int,
    piece: Piece | None = None,
    schedule: Schedule = ANY_TIME,
    loop: Loop | None = None,
) -> Job[Piece, Any]:
    """A job whose outcome is set at once, without an event loop that runs."""
    piece = piece or Piece()
    stand_in: Any = loop or Loop()
    future: Any = Outcome()
    return Job(lane, piece, schedule, number, future, stand_in, piece.key)


class Outcome:
    """Stands for a future, without an event loop."""

    def __init__(self) -> None:
        self.result: Any = None
        self.error: BaseException | None = None
        self.is_cancelled = False

    def done(self) -> bool:
        return self.is_cancelled or self.error is not None or self.result is not None

    def set_result(self, result: Any) -> None:
        assert not self.done()
        self.result = result

    def set_exception(self, error: BaseException) -> None:
        assert not self.done()
        self.error = error


async def submit(
    scheduler: Scheduler,
    work: Callable[[], Any],
    size_bytes: int = 1,
    lane: Lane[Piece, Any] | None = None,
    schedule: Schedule = ANY_TIME,
) -> Any:
    """The result of some work, on a lane of its own unless one is given."""
    timed = await scheduler.submit(lane or make_lane(), Piece(work, size_bytes), schedule)
    return timed.result


async def hold(scheduler: Scheduler, gate: Gate, **options: Any) -> asyncio.Task[Any]:
    """Occupy a thread."""
    task = asyncio.create_task(submit(scheduler, gate, **options))
    await gate.wait_until_started()
    return task


async def queue(scheduler: Scheduler, work: Callable[[], Any], **options: Any) -> asyncio.Task[Any]:
    """Submit a job and come back as soon as it waits."""
    before = scheduler.waiting
    task = asyncio.create_task(submit(scheduler, work, **options))
    await asyncio.sleep(0)  # the task's first turn puts the job into the queue
    assert scheduler.waiting == before + 1
    return task
