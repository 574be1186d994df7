"""One job: its place in the order, its deadline, and its outcome."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.engine.job import ORDER, Job, remove_job
from service.errors import UnavailableError
from service.inference import Schedule
from tests.service.engine.work import Loop, Outcome, Piece, make_job, make_lane


def make(number: int = 0, loop: Loop | None = None, **schedule: Any) -> Job[Piece, Any]:
    return make_job(make_lane(), number, Piece(), Schedule(**schedule), loop)


def outcome(job: Job[Piece, Any]) -> Outcome:
    """Where its outcome will be; a job knows that only as long as it has none."""
    found: Any = job.future
    assert isinstance(found, Outcome)
    return found


@given(st.lists(st.integers(0, 2**64 - 1), max_size=20))
def test_priority_1_is_first_and_0_is_last_and_within_one_the_first_to_come(
    priorities: list[int],
) -> None:
    jobs = [make(number, priority=priority) for number, priority in enumerate(priorities)]
    found = [job.number for job in sorted(jobs, key=ORDER)]
    asked = [n for n, priority in enumerate(priorities) if priority]
    # Python's sort is stable.
    expected = sorted(asked, key=lambda n: priorities[n])
    assert found == expected + [n for n, priority in enumerate(priorities) if not priority]


@given(st.sets(st.integers(0, 30), min_size=1), st.data())
def test_a_job_is_removed_from_a_sorted_list_and_no_other(
    numbers: set[int], data: st.DataObject
) -> None:
    jobs = [make(number, priority=number % 3) for number in numbers]
    jobs.sort(key=ORDER)
    removed = data.draw(st.sampled_from(jobs))
    expected = [job for job in jobs if job is not removed]
    remove_job(jobs, removed)
    assert jobs == expected


@pytest.mark.parametrize("timeout_us", [None, 0])
def test_without_a_timeout_a_job_is_never_late(timeout_us: int | None) -> None:
    job = make(timeout_us=timeout_us)
    assert job.is_wanted(job.queued_ns + 2**80)
    assert not outcome(job).done()


def test_a_job_is_late_as_soon_as_its_timeout_has_passed_and_says_so() -> None:
    job = make(timeout_us=5000)
    assert job.is_wanted(job.queued_ns + 4_999_999)
    found = outcome(job)
    assert not job.is_wanted(job.queued_ns + 5_310_000)
    error = found.error
    assert isinstance(error, UnavailableError)
    assert str(error) == (
        "the request waited 5.3 ms for a thread, longer than the 5000 microseconds that its "
        "parameter 'timeout' allows; raise it, or try again later"
    )


def test_a_job_whose_client_left_is_not_wanted() -> None:
    job = make()
    outcome(job).is_cancelled = True
    assert not job.is_wanted(job.queued_ns)


def test_a_result_comes_with_the_time_in_the_queue() -> None:
    job = make()
    found = outcome(job)
    job.succeed("result", job.queued_ns + 1234)
    assert (found.result.result, found.result.queue_ns) == ("result", 1234)


def test_an_outcome_that_comes_too_late_is_dropped() -> None:
    jobs = [make(), make()]
    found = [outcome(job) for job in jobs]
    for future in found:
        future.is_cancelled = True
    jobs[0].succeed("result", jobs[0].queued_ns)
    jobs[1].fail(RuntimeError("mine"))
    assert [(future.result, future.error) for future in found] == [(None, None)] * 2


def test_a_loop_that_is_closed_is_left_alone() -> None:
    job = make(loop=Loop(is_closed=True))
    found = outcome(job)
    job.succeed("result", job.queued_ns)
    assert not found.done()
