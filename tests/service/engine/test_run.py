"""One run: an outcome for each job, and no job pays for another."""

import gc
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from service.engine.abandoned import AbandonedError
from service.engine.run import attempt, check_wanted, run_jobs
from service.errors import InvalidRequestError, UnavailableError
from tests.service.engine.work import Bench, Piece, make_job, make_lane, run_pieces


class Batch:
    """Jobs of one lane, which `run` runs, and where their outcomes will be."""

    def __init__(self, run: Callable[[Sequence[Piece]], Sequence[Any]], *pieces: Piece) -> None:
        lane = make_lane(run)
        self.jobs = [make_job(lane, number, piece) for number, piece in enumerate(pieces)]
        self.futures: list[Any] = [job.future for job in self.jobs]

    @property
    def outcomes(self) -> list[Any]:
        """The result of each job, or its error."""
        return [future.error or future.result.result for future in self.futures]


def fail() -> None:
    """Work that cannot be done."""
    raise InvalidRequestError("mine")


def test_jobs_that_were_taken_together_run_together() -> None:
    bench = Bench()
    batch = Batch(bench, Piece(lambda: "a"), Piece(lambda: "b"), Piece(lambda: "c"))
    run_jobs(batch.jobs)
    assert batch.outcomes == ["a", "b", "c"]
    assert bench.runs == [[job.item for job in batch.jobs]]


def test_the_queue_time_of_all_ends_with_the_start_of_the_run() -> None:
    batch = Batch(run_pieces, Piece(lambda: "a"), Piece(lambda: "b"))
    first, second = batch.jobs
    first.queued_ns, second.queued_ns = 9000, 7000
    run_jobs(batch.jobs)
    first_ns, second_ns = (future.result.queue_ns for future in batch.futures)
    assert 0 < first_ns < time.perf_counter_ns()
    assert second_ns - first_ns == 2000


def test_the_culprit_alone_gets_the_error_and_the_others_run_again() -> None:
    bench = Bench()
    batch = Batch(bench, Piece(lambda: "a"), Piece(fail), Piece(lambda: "c"))
    run_jobs(batch.jobs)
    assert batch.outcomes[::2] == ["a", "c"]
    assert isinstance(batch.outcomes[1], InvalidRequestError)
    assert [len(run) for run in bench.runs] == [3, 1, 1, 1]


def test_a_joined_run_that_fails_for_all_gives_each_an_error_of_its_own() -> None:
    batch = Batch(run_pieces, Piece(fail), Piece(fail))
    run_jobs(batch.jobs)
    first, second = batch.outcomes
    assert (str(first), str(second)) == ("mine", "mine")
    assert first is not second


def test_who_left_while_the_joined_run_failed_is_not_run_again() -> None:
    def leave_and_fail() -> None:
        batch.futures[1].is_cancelled = True
        fail()

    bench = Bench()
    batch = Batch(bench, Piece(leave_and_fail), Piece(lambda: "b"), Piece(lambda: "c"))
    run_jobs(batch.jobs)
    assert [run[0] for run in bench.runs[1:]] == [batch.jobs[0].item, batch.jobs[2].item]


def test_jobs_that_nobody_waits_for_are_not_run() -> None:
    bench = Bench()
    batch = Batch(bench, *(Piece(lambda: "done") for _ in range(4)))
    batch.futures[0].is_cancelled = True
    batch.jobs[3].deadline_ns = 0
    run_jobs(batch.jobs)
    assert bench.runs == [[batch.jobs[1].item, batch.jobs[2].item]]
    assert isinstance(batch.futures[3].error, UnavailableError)


def test_nothing_is_run_where_nobody_waits() -> None:
    bench = Bench()
    batch = Batch(bench, Piece())
    batch.futures[0].is_cancelled = True
    run_jobs(batch.jobs)
    assert bench.runs == []


@pytest.mark.parametrize("count", [1, 3])
def test_a_run_that_loses_a_result_is_an_error(count: int) -> None:
    error = attempt(Batch(lambda pieces: [0] * count, Piece(), Piece()).jobs)
    assert isinstance(error, RuntimeError)
    assert str(error) == f"a run of 2 items gave {count} results"


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, MemoryError])
def test_whatever_is_raised_reaches_the_job(error: type[BaseException]) -> None:
    def fail_badly() -> None:
        raise error("mine")

    batch = Batch(run_pieces, Piece(fail_badly))
    run_jobs(batch.jobs)
    assert isinstance(batch.outcomes[0], error)


@pytest.mark.parametrize("work", [lambda: "done", fail])
def test_nothing_of_a_job_is_left_when_its_outcome_is_dropped(work: Callable[[], Any]) -> None:
    gc.disable()  # so that a circle of references would stay
    try:
        batch = Batch(run_pieces, Piece(work))
        item, lane = weakref.ref(batch.jobs[0].item), weakref.ref(batch.jobs[0].lane)
        run_jobs(batch.jobs)
        assert batch.outcomes
        del batch
        assert (item(), lane()) == (None, None)
    finally:
        gc.enable()


def test_a_run_goes_on_while_anybody_waits_for_it() -> None:
    batch = Batch(run_pieces, Piece(), Piece())
    check_wanted(batch.jobs)
    batch.futures[0].is_cancelled = True
    check_wanted(batch.jobs)
    batch.futures[1].is_cancelled = True
    with pytest.raises(AbandonedError):
        check_wanted(batch.jobs)


def test_a_client_that_leaves_ends_its_run_and_gets_nothing() -> None:
    done: list[int] = []

    def run(pieces: Sequence[Piece], check: Callable[[], None]) -> Sequence[Any]:
        for number in range(5):
            check()
            done.append(number)
            batch.futures[0].is_cancelled = number == 2
        return [0]

    batch = Batch(run_pieces, Piece())
    batch.jobs[0].lane.run = run
    run_jobs(batch.jobs)
    assert done == [0, 1, 2]
    assert batch.futures[0].error is batch.futures[0].result is None
