"""Jobs that may be joined in one run, while they wait."""

from bisect import insort

from service.engine.job import ORDER, AnyJob, remove_job


class Group:
    """Jobs of one lane with equal keys, in the order in which they run.

    Args:
        max_rows: the most rows of a run.

    Attributes:
        jobs: those that wait, for company or for a thread.
        rows: of all of them.
    """

    __slots__ = ("_max_rows", "jobs", "rows")

    def __init__(self, max_rows: int) -> None:
        self.jobs: list[AnyJob] = []
        self.rows = 0
        self._max_rows = max_rows

    @property
    def is_full(self) -> bool:
        """Whether there are rows enough for a run, so that nobody needs to wait for more."""
        return self.rows >= self._max_rows

    def add(self, job: AnyJob) -> None:
        """Put a job where its order says."""
        insort(self.jobs, job, key=ORDER)
        self.rows += job.item.rows

    def discard(self, job: AnyJob) -> None:
        """Take out a job that is in the group."""
        remove_job(self.jobs, job)
        self.rows -= job.item.rows

    def choose(self, first: AnyJob) -> list[AnyJob]:
        """Choose the jobs of one run: `first`, and those after it, until one does not fit."""
        chosen, rows = [first], first.item.rows
        for job in self.jobs:
            if job is first:
                continue
            rows += job.item.rows
            if rows > self._max_rows:
                break
            chosen.append(job)
        return chosen
