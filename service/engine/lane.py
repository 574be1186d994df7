"""What the jobs of one model version have in common, and those of them that wait."""

from bisect import insort
from collections.abc import Callable, Hashable, Sequence
from operator import attrgetter
from typing import Generic

from service.engine.group import Group
from service.engine.job import ORDER, AnyJob, Item, Job, Result, remove_job

Run = Callable[[Sequence[Item], Callable[[], None]], Sequence[Result]]


def join_none(_: object) -> None:
    """The key of an item that runs alone."""


def go_on() -> None:
    """Whoever asked waits still."""


def no_item(_: object) -> bool:
    """Whether an item is of a kind; none is."""
    return False


class Lane(Generic[Item, Result]):
    """The jobs of one model version: how they run, and in which order.

    A lane belongs to one scheduler, whose lock guards its methods. It holds jobs only while they
    wait, and nothing else holds it: a model that is dropped goes with its last job.

    Attributes:
        run: computes items, in one run, and gives one result for each; what it is given besides
            raises once nobody waits for them, and may be called as often as it likes.
        join_key: items with equal keys may be joined in one run; with none an item runs alone.
        limit_rows: most rows of a run that joins items with the key of this one.
        run_alone: as `run`, while nothing else computes.
        is_small: whether an item takes less time than a switch of threads is worth.
        max_running: most runs at the same time; the jobs of other lanes overtake meanwhile.
        max_delay_us: longest time that a job waits for others to be joined with; 0 joins none.
        waiting: number of jobs in the queue.
        running: number of runs that have not ended.
        head: the job that the queue has as the next one of this lane.
    """

    def __init__(
        self,
        run: Run[Item, Result],
        join_key: Callable[[Item], Hashable | None] = join_none,
        limit_rows: Callable[[Item], int] = attrgetter("rows"),
        *,
        max_running: int | None = None,
        max_delay_us: int = 0,
        run_alone: Run[Item, Result] | None = None,
        is_small: Callable[[Item], bool] = no_item,
    ) -> None:
        self.run = run
        self.run_alone = run_alone or run
        self.is_small = is_small
        self.join_key = join_key
        self.limit_rows = limit_rows
        self.max_running = max_running
        self.max_delay_us = max_delay_us
        self.waiting = 0
        self.running = 0
        self.head: AnyJob | None = None
        self._ripe: list[AnyJob] = []
        self._groups: dict[Hashable, Group] = {}

    @property
    def next(self) -> AnyJob | None:
        """The job that a thread may take, if there is one."""
        if not self._ripe or self.running == self.max_running:
            return None
        return self._ripe[0]

    def add(self, job: Job[Item, Result]) -> None:
        """Let a job wait: for company if it may be joined with others, else for a thread."""
        self.waiting += 1
        job.is_waiting = True
        if job.key is None:
            self.ripen(job)
            return
        group = self._groups.get(job.key)
        if group is None:
            group = self._groups[job.key] = Group(self.limit_rows(job.item))
        group.add(job)
        self._ripen_first(group)

    def ripen(self, job: AnyJob) -> None:
        """Let a job wait for a thread alone, and no longer for company."""
        if job.is_waiting and not job.is_ripe:
            job.is_ripe = True
            insort(self._ripe, job, key=ORDER)

    def discard(self, job: AnyJob) -> None:
        """Let a job wait no longer."""
        self.waiting -= 1
        job.is_waiting = False
        if job.is_ripe:
            remove_job(self._ripe, job)
        if job.key is None:
            return
        group = self._groups[job.key]
        group.discard(job)
        if group.jobs:
            self._ripen_first(group)
        else:
            del self._groups[job.key]

    def choose(self) -> list[AnyJob]:
        """The next job, and those that run together with it."""
        first = self._ripe[0]
        return [first] if first.key is None else self._groups[first.key].choose(first)

    def _ripen_first(self, group: Group) -> None:
        if group.is_full:
            self.ripen(group.jobs[0])
