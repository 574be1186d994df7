"""Jobs that may be joined: how many rows wait, and which of them run together."""

from typing import Any

from service.engine.group import Group
from service.engine.job import Job
from service.inference import Schedule
from tests.service.engine.work import Piece, make_job, make_lane

MAX_ROWS = 5


def fill(*rows: int) -> tuple[Group, list[Job[Piece, Any]]]:
    """A group, and its jobs of so many rows each, in order."""
    group, lane = Group(MAX_ROWS), make_lane()
    jobs = [make_job(lane, number, Piece(rows=count)) for number, count in enumerate(rows)]
    for job in jobs:
        group.add(job)
    return group, jobs


def test_a_group_is_full_with_the_rows_of_one_run() -> None:
    group, jobs = fill(2, 2)
    assert not group.is_full
    group.add(last := make_job(jobs[0].lane, 2, Piece(rows=1)))
    assert group.is_full
    group.discard(last)
    assert (group.is_full, group.rows, group.jobs) == (False, 4, jobs)


def test_jobs_stand_in_their_order_however_they_come() -> None:
    group, lane = Group(MAX_ROWS), make_lane()
    low, late, early, high = (
        make_job(lane, number, schedule=Schedule(priority))
        for number, priority in ((0, 0), (3, 2), (2, 2), (4, 1))
    )
    for job in (low, late, early, high):
        group.add(job)
    assert group.jobs == [high, early, late, low]


def test_a_run_takes_those_behind_the_first_until_one_does_not_fit() -> None:
    group, jobs = fill(2, 1, 3, 1)
    assert group.choose(jobs[0]) == jobs[:2]


def test_a_run_may_be_full_to_the_last_row() -> None:
    group, jobs = fill(2, 1, 2, 1)
    assert group.choose(jobs[0]) == jobs[:3]


def test_a_job_that_is_not_first_takes_those_before_it_along() -> None:
    group, jobs = fill(1, 1, 2)
    assert group.choose(jobs[2]) == [jobs[2], jobs[0], jobs[1]]


def test_a_job_larger_than_a_run_runs_alone() -> None:
    group, jobs = fill(7, 1)
    assert group.choose(jobs[0]) == jobs[:1]
