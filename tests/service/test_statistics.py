"""The counts behind statistics and metrics: every number, and that they add up."""

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.inference import Answer, Times
from service.statistics import REASONS, BatchCounts, ModelCounts, Statistics, find_reason

TIMES = Times(queue_ns=1_000, input_ns=20, infer_ns=300, output_ns=4)


@pytest.fixture
def statistics() -> Statistics:
    """The counts of two versions of one model."""
    made = Statistics()
    made.add("demo", "1")
    made.add("demo", "2")
    return made


def make_answer(rows: int, executed_rows: int, times: Times = TIMES, version: str = "1") -> Answer:
    """An answer of `rows` batch rows from a run of `executed_rows`."""
    tensors = {"output": np.zeros((rows, 1, 6), np.float32)}
    return Answer(tensors, "fused_bias", "demo", version, executed_rows, times)


def list_requests(counts: ModelCounts) -> dict[str, int]:
    """Everything that is counted of requests."""
    names = (
        "inference_count", "success_count", "success_ns", "queue_ns", "input_ns", "infer_ns",
        "output_ns", "fail_count", "fail_ns",
    )  # fmt: skip
    return {name: getattr(counts, name) for name in names}


NOTHING = list_requests(ModelCounts("demo", "1"))


def test_before_its_first_request_a_model_has_zeros(statistics: Statistics) -> None:
    counts = statistics.read("demo", "1")
    assert (counts.name, counts.version) == ("demo", "1")
    assert (counts.last_inference_ms, counts.execution_count, counts.batches) == (0, 0, {})
    assert set(NOTHING.values()) == set(list_requests(counts).values()) == {0}
    assert counts.failures == {"REJECTED": 0, "CANCELED": 0, "BACKEND": 0, "OTHER": 0}


def test_an_answer_counts_once_and_its_rows_each(statistics: Statistics) -> None:
    for rows in (1, 3):
        answer = make_answer(rows, executed_rows=rows)
        statistics.count_execution(answer)
        statistics.count_success(answer, total_ns=5_000)
    counts = statistics.read("demo", "1")
    assert counts.execution_count == 2
    assert list_requests(counts) == {
        "inference_count": 4,
        "success_count": 2,
        "success_ns": 10_000,
        "queue_ns": 2_000,
        "input_ns": 40,
        "infer_ns": 600,
        "output_ns": 8,
        "fail_count": 0,
        "fail_ns": 0,
    }
    assert list_requests(statistics.read("demo", "2")) == NOTHING


def test_requests_that_were_joined_have_one_run(statistics: Statistics) -> None:
    for rows, executed_rows in ((2, 5), (3, 0)):
        answer = make_answer(rows, executed_rows)
        statistics.count_execution(answer)
        statistics.count_success(answer, total_ns=5_000)
    counts = statistics.read("demo", "1")
    assert (counts.inference_count, counts.execution_count) == (5, 1)
    assert counts.success_count == 2
    assert counts.batches == {5: BatchCounts(5, 1, input_ns=20, infer_ns=300, output_ns=4)}


def test_runs_are_told_apart_by_their_rows(statistics: Statistics) -> None:
    for rows in (3, 12, 3, 1):
        statistics.count_execution(make_answer(rows, rows))
    assert statistics.read("demo", "1").batches == {
        1: BatchCounts(1, 1, input_ns=20, infer_ns=300, output_ns=4),
        3: BatchCounts(3, 2, input_ns=40, infer_ns=600, output_ns=8),
        12: BatchCounts(12, 1, input_ns=20, infer_ns=300, output_ns=4),
    }


def test_a_run_whose_answer_could_not_be_written_was_a_run_all_the_same(
    statistics: Statistics,
) -> None:
    statistics.count_execution(make_answer(3, 3))
    statistics.count_failure("demo", "1", "OTHER", 70)
    counts = statistics.read("demo", "1")
    assert counts.execution_count == 1
    assert list_requests(counts) == NOTHING | {"fail_count": 1, "fail_ns": 70}


def test_a_failure_counts_in_fail_alone_with_its_reason(statistics: Statistics) -> None:
    for number, reason in enumerate(REASONS, start=1):
        for _ in range(number):
            statistics.count_failure("demo", "2", reason, 100)
    counts = statistics.read("demo", "2")
    assert counts.failures == {"REJECTED": 1, "CANCELED": 2, "BACKEND": 3, "OTHER": 4}
    assert list_requests(counts) == NOTHING | {"fail_count": 10, "fail_ns": 1_000}
    assert (counts.execution_count, counts.last_inference_ms) == (0, 0)


def test_the_last_run_is_dated_in_milliseconds_since_1970(statistics: Statistics) -> None:
    before_ms = time.time_ns() // 1_000_000
    statistics.count_execution(make_answer(1, 1))
    after_ms = time.time_ns() // 1_000_000
    assert before_ms <= statistics.read("demo", "1").last_inference_ms <= after_ms


def test_a_clock_that_is_set_back_does_not_date_it_back(
    statistics: Statistics, monkeypatch: pytest.MonkeyPatch
) -> None:
    for now_ns in (7_000_000, 3_000_000):
        monkeypatch.setattr(time, "time_ns", lambda now_ns=now_ns: now_ns)
        statistics.count_execution(make_answer(1, 1))
    assert statistics.read("demo", "1").last_inference_ms == 7


def test_what_is_read_does_not_change_any_more(statistics: Statistics) -> None:
    statistics.count_execution(make_answer(3, 3))
    before, (all_before, _) = statistics.read("demo", "1"), statistics.read_all()
    statistics.count_execution(make_answer(3, 3))
    statistics.count_success(make_answer(3, 3), 1)
    statistics.count_failure("demo", "1", "OTHER", 1)
    for counts in (before, all_before):
        assert counts.execution_count == 1
        assert list_requests(counts) == NOTHING


def test_all_are_read_by_name_and_number_of_version() -> None:
    statistics = Statistics()
    for name, version in (("layer", "2"), ("demo", "10"), ("demo", "9"), ("layer", "1")):
        statistics.add(name, version)
    found = [(counts.name, counts.version) for counts in statistics.read_all()]
    assert found == [("demo", "9"), ("demo", "10"), ("layer", "1"), ("layer", "2")]


def test_a_model_that_was_forgotten_is_not_brought_back_by_what_was_in_flight(
    statistics: Statistics,
) -> None:
    statistics.count_success(make_answer(1, 1), 1)
    statistics.forget("demo", "1")
    statistics.count_execution(make_answer(1, 1))
    statistics.count_success(make_answer(1, 1), 1)
    statistics.count_failure("demo", "1", "OTHER", 1)
    statistics.count_failure("never-served", "1", "OTHER", 1)
    assert [counts.version for counts in statistics.read_all()] == ["2"]
    assert list_requests(statistics.read("demo", "1")) == NOTHING
    statistics.forget("demo", "1")
    statistics.add("demo", "1")
    assert list_requests(statistics.read("demo", "1")) == NOTHING


def test_a_model_that_is_loaded_again_goes_on_counting(statistics: Statistics) -> None:
    statistics.count_success(make_answer(3, 3), 1)
    statistics.add("demo", "1")
    statistics.count_success(make_answer(1, 1), 1)
    assert statistics.read("demo", "1").inference_count == 4


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (400, "OTHER"),
        (413, "OTHER"),
        (415, "OTHER"),
        (501, "OTHER"),
        (500, "BACKEND"),
        (503, "REJECTED"),
    ],
)
def test_an_error_has_a_reason_in_the_words_of_triton(status: int, reason: str) -> None:
    assert find_reason(status) == reason


def test_threads_that_count_at_the_same_time_lose_nothing(statistics: Statistics) -> None:
    threads, each = 4, 2_000

    def count() -> None:
        answer = make_answer(3, 3)
        for _ in range(each):
            statistics.count_execution(answer)
            statistics.count_success(answer, 7)
            statistics.count_failure("demo", "1", "CANCELED", 2)
            statistics.read("demo", "1")

    failed: list[Exception] = []

    def run() -> None:
        try:
            count()
        except Exception as error:
            failed.append(error)

    running = [threading.Thread(target=run) for _ in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    assert not failed
    counts, total = statistics.read("demo", "1"), threads * each
    assert counts.batches == {
        3: BatchCounts(3, total, input_ns=20 * total, infer_ns=300 * total, output_ns=4 * total)
    }
    assert (counts.inference_count, counts.success_count) == (3 * total, total)
    assert (counts.success_ns, counts.queue_ns) == (7 * total, 1_000 * total)
    assert (counts.failures["CANCELED"], counts.fail_ns) == (total, 2 * total)


@dataclass(frozen=True)
class Request:
    """A request of a run, and whether its answer could be written."""

    rows: int
    is_answered: bool


RUNS = st.lists(
    st.lists(st.builds(Request, st.integers(1, 9), st.booleans()), min_size=1, max_size=4)
)
TIMINGS = st.builds(Times, *[st.integers(0, 10**12)] * 4)


@given(RUNS, TIMINGS, st.lists(st.sampled_from(REASONS)))
def test_the_sums_add_up(
    runs: Sequence[Sequence[Request]], times: Times, refusals: Sequence[str]
) -> None:
    statistics = Statistics()
    statistics.add("demo", "1")
    for requests in runs:
        total = sum(request.rows for request in requests)
        for request, executed_rows in zip(requests, [total] + [0] * len(requests), strict=False):
            answer = make_answer(request.rows, executed_rows, times)
            statistics.count_execution(answer)
            if request.is_answered:
                statistics.count_success(answer, total_ns=times.queue_ns + 1)
            else:
                statistics.count_failure("demo", "1", "OTHER", 1)
    for reason in refusals:
        statistics.count_failure("demo", "1", reason, 1)  # type: ignore[arg-type] # of REASONS
    flat = [request for requests in runs for request in requests]
    answered = [request.rows for request in flat if request.is_answered]
    counts = statistics.read("demo", "1")
    assert counts.execution_count == len(runs)
    rows = sum(size * batch.count for size, batch in counts.batches.items())
    assert rows == sum(request.rows for request in flat)
    assert counts.inference_count == sum(answered)
    assert counts.success_count == len(answered)
    assert counts.success_ns == counts.queue_ns + counts.success_count
    assert counts.fail_count == counts.fail_ns == len(flat) - len(answered) + len(refusals)
    assert sum(batch.infer_ns for batch in counts.batches.values()) == len(runs) * times.infer_ns
