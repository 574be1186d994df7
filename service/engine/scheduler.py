"""Threads that compute, fed by one queue that is bounded by count and by bytes."""

import asyncio
import threading
import time
from itertools import count
from math import ceil

from service.engine.alarm import Alarm
from service.engine.job import AnyJob, Item, Job, Result, Timed
from service.engine.lane import Lane, go_on
from service.engine.queue import Queue
from service.engine.run import run_jobs
from service.engine.worker import Worker
from service.errors import UnavailableError
from service.inference import Schedule


class Scheduler:
    """Runs jobs by priority and then first in, first out, on threads of its own.

    The event loop only moves bytes: inference there would stop health checks for as long as it
    takes.

    Args:
        threads: how many runs there are at the same time.
        max_queue_requests: how many jobs may wait.
        max_queue_bytes: how many bytes of tensors may wait.

    Attributes:
        succeeded: how many jobs had a result.
    """

    def __init__(self, threads: int, max_queue_requests: int, max_queue_bytes: int) -> None:
        self._queue = Queue(max_queue_requests, max_queue_bytes)
        self._numbers = count()
        self.succeeded = 0
        self._lock = threading.Lock()
        self._closing = False
        self._here_since_ns: int | None = None
        self._alarm = Alarm(self._ripen)
        self._workers = [Worker(f"inference-{i}", run_jobs, self._finish) for i in range(threads)]
        # While one idles, no job that waits could start. The last to idle is the first to work:
        # its caches are warm, and one that has just finished need not be woken.
        self._idle: list[Worker] = []

    def start(self) -> None:
        """Start the threads."""
        self._alarm.start()
        for worker in self._workers:
            worker.start()
        with self._lock:
            self._idle.extend(reversed(self._workers))
            self._hand_out()

    def close(self) -> None:
        """Finish what waits, then end the threads; blocks until they have ended."""
        with self._lock:
            self._closing = True
            self._hand_out()
        self._alarm.close()
        for worker in self._workers:
            worker.join()

    @property
    def waiting(self) -> int:
        """How many jobs wait, for a thread or for company."""
        return self._queue.count

    def find_stuck(self, older_than_s: float) -> dict[str, float]:
        """The runs that take longer than `older_than_s`: seconds so far, by the thread's name."""
        now_ns = time.perf_counter_ns()
        since = {worker.name: worker.busy_since_ns for worker in self._workers}
        since["event-loop"] = self._here_since_ns
        times_s = {name: (now_ns - ns) / 1e9 for name, ns in since.items() if ns is not None}
        return {name: time_s for name, time_s in times_s.items() if time_s > older_than_s}

    async def submit(
        self,
        lane: Lane[Item, Result],
        item: Item,
        schedule: Schedule,
        *,
        is_alone: bool = False,
    ) -> Timed[Result]:
        """Compute an item on a thread.

        Args:
            lane: of the model that computes it; what its `run` raises is raised here.
            item: to compute on.
            schedule: how long it may wait, and before whom.
            is_alone: whether no other request is there, of any kind.

        Raises:
            UnavailableError: if the queue is full, the scheduler is closing, or the item has
                waited longer than `schedule` allows.
        """
        job, future = self.enqueue(lane, item, schedule, is_alone=is_alone)
        timer = self._set_timer(job) if schedule.timeout_us else None
        try:
            timed = await future
        except asyncio.CancelledError:
            self.withdraw(job)
            raise
        else:
            self.succeeded += 1
            return timed
        finally:
            if timer is not None:
                timer.cancel()
            # An error's traceback keeps this frame, and the future the error: a circle.
            del job, future

    def enqueue(
        self,
        lane: Lane[Item, Result],
        item: Item,
        schedule: Schedule,
        *,
        is_alone: bool = False,
    ) -> tuple[Job[Item, Result], "asyncio.Future[Timed[Result]]"]:
        """Queue an item; the arguments are those of `submit`.

        Returns:
            the job, to `withdraw` it, and what will be its outcome; `schedule.timeout_us` is the
            caller's to enforce.

        Raises:
            UnavailableError: if the queue is full or the scheduler is closing.
        """
        is_alone = is_alone and self._is_idle()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Timed[Result]] = loop.create_future()
        job = Job(lane, item, schedule, next(self._numbers), future, loop, is_alone=is_alone)
        if lane.max_delay_us:
            job.key = lane.join_key(item)
        self._put(job)
        return job, future

    def has_room(self) -> bool:
        """Whether one more request would find a thread or room in the queue now."""
        with self._lock:
            return bool(self._idle) or self._queue.has_room()

    def check_room(self) -> None:
        """Refuse a request whose tensors are still to come, where the queue is full now.

        Raises:
            UnavailableError: if it is, and no thread is idle.
        """
        with self._lock:
            if not self._idle:
                self._queue.check_room(0)

    def is_for_here(self, lane: Lane[Item, Result], item: Item) -> bool:
        """Whether an item is small, and no thread has anything to do; of the only request there."""
        return not lane.max_delay_us and lane.is_small(item) and self._is_idle()

    def run_here(self, lane: Lane[Item, Result], item: Item) -> Timed[Result]:
        """Compute an item in the event loop: a hop to a thread and back takes 0.05 ms.

        Args:
            lane: of the model that computes it; what its `run` raises is raised here.
            item: to compute on, one that `is_for_here`.
        """
        self._here_since_ns = time.perf_counter_ns()
        try:
            (result,) = lane.run_alone([item], go_on)
        finally:
            self._here_since_ns = None
        self.succeeded += 1
        return Timed(result, 0)

    def _is_idle(self) -> bool:
        with self._lock:
            is_working = self._closing or self._queue.count
            return not is_working and len(self._idle) == len(self._workers)

    def _put(self, job: AnyJob) -> None:
        with self._lock:
            if self._closing:
                raise UnavailableError("the server is stopping")
            if self._idle and self._queue.start(job):
                self._idle.pop().hand([job])
                return
            self._queue.add(job)
            self._hand_out()
        if job.key is not None and not job.is_ripe:
            self._alarm.set(job, job.queued_ns + 1000 * find_delay_us(job))

    def _ripen(self, job: AnyJob) -> None:
        with self._lock:
            self._queue.ripen(job)
            self._hand_out()

    def collect(self, outcome: "asyncio.Future[Timed[Result]]") -> Timed[Result]:
        """The result of a job that was queued, and is done.

        Raises:
            BaseException: whatever its outcome is instead.
        """
        try:
            timed = outcome.result()
        finally:
            del (
                outcome
            )  # an error's traceback keeps this frame, and the outcome the error: a circle
        self.succeeded += 1
        return timed

    def withdraw(self, job: AnyJob) -> bool:
        """Take a job out of the queue, if it waits still; says whether it did."""
        with self._lock:
            was_waiting = self._queue.discard(job)
            self._hand_out()
            return was_waiting

    def _finish(self, worker: Worker, jobs: list[AnyJob]) -> None:
        with self._lock:
            self._queue.finish(jobs[0].lane)
            self._idle.append(worker)
            self._hand_out()

    def _hand_out(self) -> None:
        """Give idle threads what may start; end them when nothing will come any more."""
        idle, queue = self._idle, self._queue
        while idle and (jobs := queue.take()):
            idle.pop().hand(jobs)
        if self._closing and not queue.count:
            while idle:
                idle.pop().hand([])

    def _set_timer(self, job: AnyJob) -> asyncio.TimerHandle:
        # Event loops count in whole milliseconds, and uvloop may be one early.
        timeout_ms = ceil((job.schedule.timeout_us or 0) / 1000) + 1
        return job.loop.call_later(timeout_ms / 1000, self._refuse_late, job)

    def _refuse_late(self, job: AnyJob) -> None:
        if self.withdraw(job) and not job.future.done():
            job.future.set_exception(job.explain_lateness(time.perf_counter_ns()))


def find_delay_us(job: AnyJob) -> int:
    """How long a job waits for company: half its timeout at most, or it would end in that."""
    delay_us = job.lane.max_delay_us
    timeout_us = job.schedule.timeout_us
    return min(delay_us, timeout_us // 2) if timeout_us else delay_us
