"""What several processes have counted, added up."""

from typing import Any, Final

import pytest
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.parser import text_string_to_metric_families

from service.statistics import BatchCounts, ModelCounts
from service.tally import Tally, add
from service.triton_metrics import Reading

SUCCESS: Final = "nv_inference_request_success_total"  # the parser knows no counter without
Values = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def count(model: str, answers: int, held: int, *waits_s: float) -> Tally:
    """What one process has counted."""
    registry = CollectorRegistry()
    labels = ["model", "version"]
    Gauge("limelight_info", "Version.", ["version"], registry=registry).labels("1.2").set(1)
    Gauge("limelight_held_bytes", "Bytes.", registry=registry).set(held)
    Counter("limelight_requests", "Requests.", labels, registry=registry).labels(model, "7").inc(
        answers
    )
    Counter("limelight_departures", "Left.", ["stage"], registry=registry).labels("body").inc(2)
    waits = Histogram(
        "limelight_queue_seconds", "Waits.", labels, buckets=(1, 2), registry=registry
    )
    for wait_s in waits_s:
        waits.labels(model, "7").observe(wait_s)
    counts = ModelCounts(model, "7", success_count=answers)
    return Tally(list(registry.collect()), [Reading(counts, held)])


def read(tally: Tally) -> Values:
    """Every sample that is written, but for when its series began."""
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(tally.render().decode())
        for sample in family.samples
        if not sample.name.endswith("_created")
    }


def find(tally: Tally, name: str, **labels: str) -> float | None:
    """The value of a sample."""
    return read(tally).get((name, tuple(sorted(labels.items()))))


def test_counters_histograms_and_what_is_held_add_up_and_facts_do_not() -> None:
    total = add([count("a", 3, 50, 0.5, 1.5), count("a", 4, 70, 5)])
    a: dict[str, Any] = {"model": "a", "version": "7"}
    assert find(total, "limelight_requests_total", **a) == 7
    assert find(total, "limelight_departures_total", stage="body") == 4
    assert find(total, "limelight_held_bytes") == 120
    assert find(total, "limelight_info", version="1.2") == 1
    buckets = [find(total, "limelight_queue_seconds_bucket", **a, le=le) for le in ("1.0", "2.0")]
    assert buckets == [1, 2]
    assert find(total, "limelight_queue_seconds_bucket", **a, le="+Inf") == 3
    assert find(total, "limelight_queue_seconds_sum", **a) == 7
    assert find(total, SUCCESS, **a) == 7
    assert find(total, "nv_inference_pending_request_count", **a) == 120


def read_begin(tally: Tally) -> float:
    """When a tally began to count requests."""
    samples = [sample for family in tally.families for sample in family.samples]
    (sample,) = [each for each in samples if each.name == "limelight_requests_created"]
    return sample.value


def test_a_series_began_when_the_first_of_them_did() -> None:
    first, second = count("a", 1, 0), count("a", 1, 0)
    assert read_begin(first) < read_begin(second)
    assert read_begin(add([second, first])) == read_begin(first)


def test_models_that_only_one_of_them_serves_are_there_as_well() -> None:
    total = add([count("b", 3, 0), count("a", 5, 0)])
    assert find(total, "limelight_requests_total", model="b", version="7") == 3
    assert find(total, "limelight_requests_total", model="a", version="7") == 5
    assert [reading.counts.name for reading in total.readings] == ["a", "b"]


def test_the_sum_of_one_is_what_it_is() -> None:
    tally = count("a", 3, 50, 0.5)
    assert add([tally]).render() == tally.render()


def test_nothing_is_the_sum_of_none() -> None:
    assert add([]) == Tally([], [])


def test_to_add_changes_nothing_that_was_added() -> None:
    tallies = [count("a", 3, 50, 0.5), count("a", 4, 70, 5)]
    before = [tally.render() for tally in tallies]
    add(tallies)
    assert [tally.render() for tally in tallies] == before


def test_of_a_process_that_ended_stays_what_it_counted() -> None:
    buried = count("a", 3, 50).bury()
    assert find(buried, "limelight_requests_total", model="a", version="7") == 3
    assert find(buried, SUCCESS, model="a", version="7") == 3
    assert find(buried, "nv_inference_pending_request_count", model="a", version="7") == 0
    assert find(buried, "limelight_held_bytes") is None


def test_models_that_are_served_no_longer_are_dropped_and_the_rest_is_kept() -> None:
    kept = add([count("a", 3, 0), count("b", 4, 0)]).keep(count("b", 1, 0))
    assert find(kept, "limelight_requests_total", model="a", version="7") is None
    assert find(kept, "limelight_requests_total", model="b", version="7") == 4
    assert find(kept, "limelight_departures_total", stage="body") == 4
    assert [reading.counts.name for reading in kept.readings] == ["b"]


def make_counts(factor: int) -> ModelCounts:
    """Counts that all differ."""
    failures: Any = {"REJECTED": factor, "CANCELED": 2 * factor, "BACKEND": 0, "OTHER": 3 * factor}
    batches = {3: BatchCounts(3, factor, 4 * factor, 5 * factor, 6 * factor)}
    return ModelCounts(
        name="a",
        version="7",
        last_inference_ms=7 * factor,
        inference_count=8 * factor,
        success_count=9 * factor,
        success_ns=10 * factor,
        queue_ns=11 * factor,
        input_ns=12 * factor,
        infer_ns=13 * factor,
        output_ns=14 * factor,
        fail_ns=15 * factor,
        failures=failures,
        batches=batches,
    )


def test_every_count_of_a_version_adds_up_but_for_when_it_was_last_asked() -> None:
    other = make_counts(10)
    other.batches[5] = BatchCounts(5, 1, 2, 3, 4)
    (total,) = add([Tally([], [Reading(each, 0)]) for each in (make_counts(1), other)]).readings
    wanted = make_counts(11)
    wanted.last_inference_ms = 70
    wanted.batches[5] = BatchCounts(5, 1, 2, 3, 4)
    assert total.counts == wanted


@pytest.mark.parametrize("versions", [["10", "9"], ["9", "10"]])
def test_versions_are_in_the_order_of_their_numbers(versions: list[str]) -> None:
    tallies = [Tally([], [Reading(ModelCounts("a", version), 0)]) for version in versions]
    assert [reading.counts.version for reading in add(tallies).readings] == ["9", "10"]
