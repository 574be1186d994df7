"""Metrics: one registry for each application, labels that no client chooses."""

import sys
import threading

import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families

from service.engine.model import Model
from service.inference import Answer, Times
from service.metrics import MEDIA_TYPE, NO_MODEL, Metrics
from service.statistics import Statistics

DEMO = {"model": "demo", "version": "1"}


@pytest.fixture
def statistics() -> Statistics:
    return Statistics()


@pytest.fixture
def metrics(statistics: Statistics, demo: Model) -> Metrics:
    """The metrics of a server of the demo."""
    made = Metrics("1.2", statistics)
    made.count_model(demo)
    return made


def read(metrics: Metrics, name: str, **labels: str) -> float | None:
    """The value of one sample, by the name that is written; none if it is not there."""
    found = [
        float(line.rpartition(" ")[2])
        for line in metrics.render().decode().splitlines()
        if line.partition("{")[0] == name and all(f'{k}="{v}"' in line for k, v in labels.items())
    ]
    assert len(found) <= 1
    return found[0] if found else None


def make_answer(model: str = "demo") -> Answer:
    tensors = {"output": np.zeros((3, 1, 6), np.float32)}
    times = Times(queue_ns=1_500_000, input_ns=7_000_000, infer_ns=20_000_000, output_ns=3_000_000)
    return Answer(tensors, "fused_bias", model, "1", 3, times)


def test_a_new_application_says_its_version_and_counts_nothing() -> None:
    metrics = Metrics("1.2", Statistics())
    assert read(metrics, "limelight_info", version="1.2") == 1
    assert "demo" not in metrics.render().decode()


def test_applications_count_for_themselves(metrics: Metrics, demo: Model) -> None:
    other = Metrics("1.2", Statistics())
    other.count_model(demo)
    metrics.count_answer(make_answer(), 100)
    assert read(metrics, "limelight_requests_total", **DEMO, outcome="ok") == 1
    assert read(other, "limelight_requests_total", **DEMO, outcome="ok") == 0


def test_an_answer_is_counted_with_its_times_in_seconds(metrics: Metrics) -> None:
    for _ in range(2):
        metrics.count_answer(make_answer(), total_ns=40_000_000)
    assert read(metrics, "limelight_requests_total", **DEMO, outcome="ok") == 2
    for name, total_s in (("queue", 0.003), ("compute", 0.06), ("total", 0.08)):
        assert read(metrics, f"limelight_{name}_seconds_count", **DEMO) == 2
        found = read(metrics, f"limelight_{name}_seconds_sum", **DEMO)
        assert found == pytest.approx(total_s)
    bucket = "limelight_compute_seconds_bucket"
    assert read(metrics, bucket, **DEMO, le="0.02") == 0
    assert read(metrics, bucket, **DEMO, le="0.05") == 2


def test_a_version_that_is_served_again_counts_from_the_beginning(
    metrics: Metrics, demo: Model
) -> None:
    metrics.count_answer(make_answer(), 100)
    metrics.forget_model("demo", "1")
    metrics.count_answer(make_answer(), 100)  # of a run that was on its way
    assert read(metrics, "limelight_requests_total", **DEMO, outcome="ok") is None
    metrics.count_model(demo)
    metrics.count_answer(make_answer(), 100)
    assert read(metrics, "limelight_requests_total", **DEMO, outcome="ok") == 1
    for name in ("queue", "compute", "total"):
        assert read(metrics, f"limelight_{name}_seconds_count", **DEMO) == 1


def test_a_version_that_is_noted_twice_goes_on_counting(metrics: Metrics, demo: Model) -> None:
    metrics.count_answer(make_answer(), 100)
    metrics.count_model(demo)
    metrics.count_answer(make_answer(), 100)
    assert read(metrics, "limelight_requests_total", **DEMO, outcome="ok") == 2
    assert read(metrics, "limelight_total_seconds_count", **DEMO) == 2


@pytest.mark.parametrize("status", [400, 413, 500, 503])
def test_an_error_is_counted_by_its_status(metrics: Metrics, status: int) -> None:
    metrics.count_error("demo", "1", status, 100)
    assert read(metrics, "limelight_requests_total", **DEMO, outcome=str(status)) == 1


def test_a_departure_is_an_outcome_and_a_failure(metrics: Metrics) -> None:
    metrics.count_departure("demo", "1", 100)
    assert read(metrics, "limelight_requests_total", **DEMO, outcome="left") == 1
    assert read(metrics, "nv_inference_request_failure", **DEMO, reason="CANCELED") == 1


def test_both_families_count_the_same_requests(metrics: Metrics) -> None:
    metrics.count_execution(make_answer())
    metrics.count_answer(make_answer(), total_ns=40_000_999)
    metrics.count_error("demo", "1", 503, 100)
    values = {
        "request_success": 1,
        "count": 3,
        "exec_count": 1,
        "request_duration_us": 40_000,
        "queue_duration_us": 1_500,
        "compute_input_duration_us": 7_000,
        "compute_infer_duration_us": 20_000,
        "compute_output_duration_us": 3_000,
        "pending_request_count": 0,
    }
    found = {name: read(metrics, f"nv_inference_{name}", **DEMO) for name in values}
    assert found == values
    for reason, number in {"REJECTED": 1, "CANCELED": 0, "BACKEND": 0, "OTHER": 0}.items():
        assert read(metrics, "nv_inference_request_failure", **DEMO, reason=reason) == number


def test_the_numbers_are_those_of_the_statistics(metrics: Metrics, statistics: Statistics) -> None:
    metrics.count_answer(make_answer(), total_ns=5_000)
    statistics.count_success(make_answer(), total_ns=6_000)
    assert read(metrics, "nv_inference_request_success", **DEMO) == 2
    assert read(metrics, "nv_inference_request_duration_us", **DEMO) == 11
    assert statistics.read("demo", "1").success_ns == 11_000


def test_the_requests_that_wait_are_those_of_the_models_lane(
    metrics: Metrics, demo: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo.lane, "waiting", 7)
    assert read(metrics, "nv_inference_pending_request_count", **DEMO) == 7


def test_a_model_says_where_it_computes(metrics: Metrics) -> None:
    assert read(metrics, "limelight_model_info", **DEMO, provider="cpu") == 1


def test_a_model_without_requests_has_zeros_in_the_metrics_of_triton(metrics: Metrics) -> None:
    samples = [line for line in metrics.render().decode().splitlines() if line.startswith("nv_")]
    assert len(samples) == 8 + 4 + 1
    assert all(line.endswith(" 0") for line in samples)


def list_names(metrics: Metrics) -> list[str]:
    """All series, without their values."""
    return [line.rpartition(" ")[0] for line in metrics.render().decode().splitlines()]


def test_a_model_that_is_no_longer_served_leaves_no_series(
    metrics: Metrics, statistics: Statistics
) -> None:
    before = list_names(Metrics("1.2", Statistics()))
    metrics.count_execution(make_answer())
    metrics.count_answer(make_answer(), 100)
    metrics.count_error("demo", "1", 400, 100)
    metrics.forget_model("demo", "1")
    # Requests in flight end after their model was unloaded.
    metrics.count_execution(make_answer())
    metrics.count_answer(make_answer(), 100)
    metrics.count_error("demo", "1", 503, 100)
    metrics.count_departure("demo", "1", 100)
    assert list_names(metrics) == before
    assert statistics.read_all() == []


def test_a_model_that_goes_while_requests_end_leaves_no_series(
    metrics: Metrics, demo: Model
) -> None:
    over, interval_s = threading.Event(), sys.getswitchinterval()

    def count() -> None:
        while not over.is_set():
            metrics.count_answer(make_answer(), 100)
            metrics.count_error("demo", "1", 400, 100)

    counting = threading.Thread(target=count)
    sys.setswitchinterval(1e-6)
    try:
        counting.start()
        for _ in range(300):
            metrics.count_model(demo)
            metrics.forget_model("demo", "1")
            assert b"demo" not in metrics.render()
    finally:
        over.set()
        counting.join()
        sys.setswitchinterval(interval_s)


def test_forgetting_a_version_leaves_the_others(metrics: Metrics) -> None:
    before = metrics.render()
    metrics.forget_model("demo", "2")
    metrics.forget_model("other", "1")
    assert metrics.render() == before


def test_names_that_are_not_served_add_no_series(metrics: Metrics) -> None:
    before = metrics.render()
    for number in range(10_000):
        metrics.count_error(f"name{number}", "1", 404, 100)
        metrics.count_departure("demo", str(number + 2), 100)
        metrics.count_answer(make_answer(model=f"name{number}"), 100)
    assert metrics.render() == before


def test_requests_without_a_model_are_counted_together(
    metrics: Metrics, statistics: Statistics
) -> None:
    metrics.count_error(NO_MODEL, NO_MODEL, 400, 100)
    metrics.count_departure(NO_MODEL, NO_MODEL, 100)
    labels = {"model": "", "version": ""}
    assert read(metrics, "limelight_requests_total", **labels, outcome="400") == 1
    assert read(metrics, "limelight_requests_total", **labels, outcome="left") == 1
    assert statistics.read("demo", "1").fail_count == 0


def test_every_metric_has_a_text_and_a_type(metrics: Metrics) -> None:
    metrics.count_answer(make_answer(), 100)
    families = list(text_string_to_metric_families(metrics.render().decode()))
    assert len({family.name for family in families}) == len(families) > 10
    assert all(family.documentation for family in families)
    assert {family.type for family in families} == {"counter", "gauge", "histogram"}
    assert MEDIA_TYPE.startswith("text/plain")
