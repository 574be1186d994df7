"""One run: jobs that were taken together, computed, each with an outcome of its own."""

import time
from collections.abc import Sequence
from functools import partial
from typing import Any

from service.engine.abandoned import AbandonedError
from service.engine.job import AnyJob


def run_jobs(jobs: Sequence[AnyJob]) -> None:
    """Compute jobs that were taken together; those that nobody waits for cost nothing."""
    started_ns = time.perf_counter_ns()
    wanted = [job for job in jobs if job.is_wanted(started_ns)]
    if wanted:
        compute(wanted, started_ns)


def compute(jobs: Sequence[AnyJob], started_ns: int) -> None:
    """Run jobs together; if that fails, apart, so that the culprit alone gets the error."""
    outcome = attempt(jobs)
    if not isinstance(outcome, BaseException):
        for job, result in zip(jobs, outcome, strict=True):
            job.succeed(result, started_ns)
        return
    if len(jobs) == 1:
        jobs[0].fail(outcome)
    # Its traceback keeps the tensors, and this frame: with the error in it, a circle.
    del outcome
    if len(jobs) > 1:
        run_apart(jobs, started_ns)


def run_apart(jobs: Sequence[AnyJob], started_ns: int) -> None:
    """Run jobs one by one, those of them that somebody still waits for."""
    for job in jobs:
        if not job.future.done():
            compute([job], started_ns)


def attempt(jobs: Sequence[AnyJob]) -> Sequence[Any] | BaseException:
    """Run jobs together; what is raised is returned, as one bad job must not end its thread."""
    try:
        lane = jobs[0].lane
        run = lane.run_alone if jobs[0].is_alone and len(jobs) == 1 else lane.run
        results = run([job.item for job in jobs], partial(check_wanted, jobs))
        if len(results) != len(jobs):
            raise RuntimeError(f"a run of {len(jobs)} items gave {len(results)} results")
    except BaseException as error:
        return error
    return results


def check_wanted(jobs: Sequence[AnyJob]) -> None:
    """End a run whose clients have all left, or were told that it took too long.

    Raises:
        AbandonedError: if nobody waits any more.
    """
    if all(job.future.done() for job in jobs):
        raise AbandonedError
