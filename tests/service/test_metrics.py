"""Metrics: one registry for each application, labels that no client chooses."""

from collections.abc import Callable

import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families

from service.engine.model import Model
from service.inference import Answer
from service.metrics import MEDIA_TYPE, Metrics

Read = Callable[..., float | None]


@pytest.fixture
def metrics() -> Metrics:
    return Metrics("1.2")


def read(metrics: Metrics, name: str, **labels: str) -> float | None:
    """The value of one sample, if it is there."""
    for family in text_string_to_metric_families(metrics.render().decode()):
        for sample in family.samples:
            if sample.name == name and sample.labels == labels:
                return float(sample.value)
    return None


def make_answer() -> Answer:
    tensors = {"output": np.zeros((1, 1, 6), np.float32)}
    return Answer(tensors, "fused_bias", "demo", "1", queue_ms=1.5, compute_ms=30)


def test_a_new_application_says_its_version_and_nothing_else(metrics: Metrics) -> None:
    assert read(metrics, "limelight_info", version="1.2") == 1
    assert (
        read(metrics, "limelight_requests_total", model="demo", version="1", outcome="ok") is None
    )


def test_applications_count_for_themselves(metrics: Metrics) -> None:
    other = Metrics("1.2")
    metrics.count_answer(make_answer(), 0.1)
    labels = {"model": "demo", "version": "1", "outcome": "ok"}
    assert read(metrics, "limelight_requests_total", **labels) == 1
    assert read(other, "limelight_requests_total", **labels) is None


def test_an_answer_is_counted_with_its_times_in_seconds(metrics: Metrics) -> None:
    for _ in range(2):
        metrics.count_answer(make_answer(), total_s=0.04)
    labels = {"model": "demo", "version": "1"}
    assert read(metrics, "limelight_requests_total", **labels, outcome="ok") == 2
    for name, total_s in (("queue", 0.003), ("compute", 0.06), ("total", 0.08)):
        assert read(metrics, f"limelight_{name}_seconds_count", **labels) == 2
        found = read(metrics, f"limelight_{name}_seconds_sum", **labels)
        assert found == pytest.approx(total_s)
    bucket = "limelight_compute_seconds_bucket"
    assert read(metrics, bucket, **labels, le="0.02") == 0
    assert read(metrics, bucket, **labels, le="0.05") == 2


@pytest.mark.parametrize("status", [400, 413, 500, 503])
def test_an_error_is_counted_by_its_status(metrics: Metrics, demo: Model, status: int) -> None:
    metrics.count_error(demo.name, demo.version, status)
    labels = {"model": "demo", "version": "1", "outcome": str(status)}
    assert read(metrics, "limelight_requests_total", **labels) == 1


def test_a_model_says_where_it_computes(metrics: Metrics, demo: Model) -> None:
    metrics.count_model(demo)
    labels = {"model": "demo", "version": "1", "provider": "cpu"}
    assert read(metrics, "limelight_model_info", **labels) == 1


def test_every_metric_has_a_text(metrics: Metrics) -> None:
    families = list(text_string_to_metric_families(metrics.render().decode()))
    assert families
    assert all(family.documentation for family in families)
    assert MEDIA_TYPE.startswith("text/plain")
