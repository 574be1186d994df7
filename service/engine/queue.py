"""The jobs that wait, of all lanes, in the order in which they run."""

from bisect import insort
from typing import Any

from service.engine.job import ORDER, AnyJob, remove_job
from service.engine.lane import Lane
from service.errors import UnavailableError


class Queue:
    """Jobs by priority and, within one, first in, first out; bounded by count and by bytes.

    Not safe for threads: the scheduler's lock guards it.

    Args:
        max_requests: how many jobs may wait.
        max_bytes: how many bytes of tensors may wait.

    Attributes:
        count: jobs that wait.
        size_bytes: of their tensors.
    """

    def __init__(self, max_requests: int, max_bytes: int) -> None:
        self._max_requests = max_requests
        self._max_bytes = max_bytes
        # The next job of each lane that may start one, so that the others cost nothing.
        self._heads: list[AnyJob] = []
        self.count = 0
        self.size_bytes = 0

    def add(self, job: AnyJob) -> None:
        """Let a job wait.

        Raises:
            UnavailableError: if the queue is full.
        """
        job.size_bytes = job.item.size_bytes
        self.check_room(job.size_bytes)
        self.count += 1
        self.size_bytes += job.size_bytes
        job.lane.add(job)
        self._note_head(job.lane)

    def start(self, job: AnyJob) -> bool:
        """Count a job that came while a thread idled as a run of its lane, if it may start.

        While a thread idles, no job that waits could start: this one passes none.
        """
        lane = job.lane
        if job.key is not None or lane.running == lane.max_running:
            return False
        lane.running += 1
        return True

    def ripen(self, job: AnyJob) -> None:
        """Let a job wait no longer for company."""
        job.lane.ripen(job)
        self._note_head(job.lane)

    def discard(self, job: AnyJob) -> bool:
        """Take out a job, if it waits still; says whether it did."""
        if not job.is_waiting:
            return False
        self._forget(job)
        self._note_head(job.lane)
        return True

    def take(self) -> list[AnyJob]:
        """Take the jobs of the next run; nothing where none may start.

        The lane counts one more run, until `finish`.
        """
        if not self._heads:
            return []
        lane = self._heads[0].lane
        jobs = lane.choose()
        for job in jobs:
            self._forget(job)
        lane.running += 1
        self._note_head(lane)
        return jobs

    def finish(self, lane: Lane[Any, Any]) -> None:
        """Note that a run of `lane` has ended."""
        lane.running -= 1
        self._note_head(lane)

    def has_room(self) -> bool:
        """Whether one more job may wait, were it of no size."""
        is_full = self.count and self.size_bytes > self._max_bytes
        return self.count < self._max_requests and not is_full

    def check_room(self, size_bytes: int) -> None:
        """Refuse one more job where there is no room for it.

        Raises:
            UnavailableError: if the queue is full.
        """
        if self.count >= self._max_requests:
            raise UnavailableError(
                f"{self.count} requests are waiting already, expected fewer than "
                f"{self._max_requests} (LIMELIGHT_MAX_QUEUE_REQUESTS); try again later"
            )
        # A request larger than the bound may still wait alone.
        if self.count and self.size_bytes + size_bytes > self._max_bytes:
            raise UnavailableError(
                f"{self.size_bytes} bytes are waiting already, no room for "
                f"{size_bytes} more within {self._max_bytes} "
                "(LIMELIGHT_MAX_QUEUE_BYTES); try again later"
            )

    def _forget(self, job: AnyJob) -> None:
        self.count -= 1
        self.size_bytes -= job.size_bytes
        job.lane.discard(job)

    def _note_head(self, lane: Lane[Any, Any]) -> None:
        head = lane.next
        if head is lane.head:
            return
        if lane.head is not None:
            remove_job(self._heads, lane.head)
        if head is not None:
            insort(self._heads, head, key=ORDER)
        lane.head = head
