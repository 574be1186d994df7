"""Threads that compute, fed by one queue that is bounded by count and by bytes."""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from service.errors import UnavailableError

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Timed(Generic[Result]):
    """A result, and how long it waited and took."""

    result: Result
    queue_ms: float
    compute_ms: float


@dataclass(slots=True, eq=False)
class Job(Generic[Result]):
    """One piece of work that waits for a thread."""

    work: Callable[[], Result]
    size_bytes: int
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Timed[Result]]
    queued_ns: int = field(default_factory=time.perf_counter_ns)


class Scheduler:
    """Runs jobs first in, first out, on threads of its own.

    The event loop only moves bytes: inference there would stop health checks for as long as it
    takes.

    Args:
        threads: how many jobs run at the same time.
        max_queue_requests: how many may wait.
        max_queue_bytes: how many bytes of tensors may wait.
    """

    def __init__(self, threads: int, max_queue_requests: int, max_queue_bytes: int) -> None:
        self._max_queue_requests = max_queue_requests
        self._max_queue_bytes = max_queue_bytes
        self._queue: deque[Job[object]] = deque()
        self._queue_bytes = 0
        self._changed = threading.Condition()
        self._closing = False
        self._threads = [
            threading.Thread(target=self._serve, name=f"inference-{i}", daemon=True)
            for i in range(threads)
        ]

    def start(self) -> None:
        """Start the threads."""
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Finish what waits, then end the threads; blocks until they have ended."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    @property
    def waiting(self) -> int:
        """How many jobs wait for a thread."""
        return len(self._queue)

    async def submit(self, work: Callable[[], Result], size_bytes: int) -> Timed[Result]:
        """Compute `work` on a thread.

        Args:
            work: to call; what it raises is raised here.
            size_bytes: memory that it holds while it waits.

        Raises:
            UnavailableError: if the queue is full, or the scheduler is closing.
        """
        loop = asyncio.get_running_loop()
        job = Job(work, size_bytes, loop, loop.create_future())
        self._put(job)
        return await job.future

    def _put(self, job: Job[object]) -> None:
        with self._changed:
            if self._closing:
                raise UnavailableError("the server is stopping")
            if len(self._queue) >= self._max_queue_requests:
                raise UnavailableError(
                    f"{len(self._queue)} requests are waiting already, expected fewer than "
                    f"{self._max_queue_requests} (LIMELIGHT_MAX_QUEUE_REQUESTS); try again later"
                )
            # A request larger than the bound may still wait alone.
            if self._queue and self._queue_bytes + job.size_bytes > self._max_queue_bytes:
                raise UnavailableError(
                    f"{self._queue_bytes} bytes are waiting already, no room for "
                    f"{job.size_bytes} more within {self._max_queue_bytes} "
                    "(LIMELIGHT_MAX_QUEUE_BYTES); try again later"
                )
            self._queue.append(job)
            self._queue_bytes += job.size_bytes
            self._changed.notify()

    def _take(self) -> Job[object] | None:
        with self._changed:
            while not self._queue:
                if self._closing:
                    return None
                self._changed.wait()
            job = self._queue.popleft()
            self._queue_bytes -= job.size_bytes
            return job

    def _serve(self) -> None:
        while self._run_next():
            pass

    def _run_next(self) -> bool:
        # In a function of its own: a thread that waits must not keep its last job's tensors.
        job = self._take()
        if job is None:
            return False
        # Nobody waits for a cancelled future: compute nothing for it.
        if not job.future.cancelled():
            run_job(job)
        return True


def run_job(job: Job[object]) -> None:
    """Do the work and bring its outcome to the event loop, whatever it is."""
    started_ns = time.perf_counter_ns()
    try:
        result = job.work()
    except BaseException as error:  # one bad job must not end its thread
        settle(job, job.future.set_exception, error)
        return
    ended_ns = time.perf_counter_ns()
    queue_ms, compute_ms = (started_ns - job.queued_ns) / 1e6, (ended_ns - started_ns) / 1e6
    settle(job, job.future.set_result, Timed(result, queue_ms, compute_ms))


def settle(job: Job[object], setter: Callable[..., None], outcome: object) -> None:
    """Set the outcome from the loop's own thread, unless the client left or the loop ended."""

    def set_outcome() -> None:
        if not job.future.done():
            setter(outcome)

    try:
        job.loop.call_soon_threadsafe(set_outcome)
    except RuntimeError:
        # The loop is closed: nobody waits any more.
        return
