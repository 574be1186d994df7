"""The jobs of one model version: which may start, and which still wait for company."""

from typing import Any

from service.engine.job import Job
from service.engine.lane import Lane
from service.inference import Schedule
from tests.service.engine.work import Piece, make_job, make_lane

Jobs = list[Job[Piece, Any]]


def fill(lane: Lane[Piece, Any], *pieces: Piece) -> Jobs:
    """Jobs of these pieces, which wait in `lane`."""
    jobs = [make_job(lane, number, piece) for number, piece in enumerate(pieces)]
    for job in jobs:
        lane.add(job)
    return jobs


def take(lane: Lane[Piece, Any]) -> Jobs:
    """Take what runs next out of a lane, as the queue does."""
    jobs = lane.choose()
    for job in jobs:
        lane.discard(job)
    lane.running += 1
    return jobs


def test_a_job_without_a_key_may_start_at_once_and_alone() -> None:
    lane = make_lane()
    first, second = fill(lane, Piece(), Piece())
    assert lane.next is first
    assert take(lane) == [first]
    assert lane.next is second
    assert lane.waiting == 1


def test_a_job_with_a_key_waits_for_company_until_it_is_ripe() -> None:
    lane = make_lane(max_rows=4)
    first, second = fill(lane, Piece(key="a"), Piece(key="a"))
    assert lane.next is None
    assert lane.waiting == 2
    lane.ripen(second)
    assert lane.next is second
    assert take(lane) == [second, first]
    assert lane.waiting == 0


def test_a_group_with_rows_enough_waits_no_longer() -> None:
    lane = make_lane(max_rows=4)
    jobs = fill(lane, Piece(key="a", rows=3), Piece(key="b", rows=3))
    assert lane.next is None
    jobs += fill(lane, Piece(key="a", rows=1))
    assert take(lane) == [jobs[0], jobs[2]]
    assert lane.next is None


def test_what_is_left_of_a_large_group_may_start_too() -> None:
    lane = make_lane(max_rows=3)
    jobs = fill(lane, *(Piece(key="a", rows=2) for _ in range(3)))
    assert take(lane) == jobs[:1]
    assert take(lane) == jobs[1:2]
    assert lane.next is None


def test_jobs_of_unlike_keys_run_apart() -> None:
    lane = make_lane(max_rows=2)
    jobs = fill(lane, Piece(key="a"), Piece(key="b"), Piece(key="a"), Piece(key="b"))
    assert take(lane) == [jobs[0], jobs[2]]
    assert take(lane) == [jobs[1], jobs[3]]


def test_ripening_a_job_that_left_or_is_ripe_changes_nothing() -> None:
    lane = make_lane()
    left, ripe = fill(lane, Piece(key="a"), Piece())
    lane.discard(left)
    for job in (left, ripe):
        lane.ripen(job)
    assert take(lane) == [ripe]
    assert lane.next is None
    assert lane.waiting == 0


def test_no_more_runs_start_than_the_lane_allows() -> None:
    lane = make_lane(max_running=2)
    first, second, third = fill(lane, Piece(), Piece(), Piece())
    assert [take(lane), take(lane)] == [[first], [second]]
    assert lane.next is None
    lane.running -= 1
    assert lane.next is third


def test_priority_holds_within_the_lane() -> None:
    lane = make_lane()
    fill(lane, Piece())
    urgent = make_job(lane, 1, schedule=Schedule(priority=2))
    lane.add(urgent)
    assert take(lane) == [urgent]
