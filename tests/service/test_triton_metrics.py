"""The metrics of Triton: the very names, and the numbers of the statistics."""

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from service.statistics import BatchCounts, ModelCounts
from service.triton_metrics import Reading, render_triton_metrics

HELD = """\
# HELP nv_inference_request_success Number of successful inference requests, all batch sizes
# TYPE nv_inference_request_success counter
nv_inference_request_success{model="demo",version="2"} 3
# HELP nv_inference_count Number of inferences performed (does not include cached requests)
# TYPE nv_inference_count counter
nv_inference_count{model="demo",version="2"} 21
# HELP nv_inference_exec_count Number of model executions performed (does not include cached \
requests)
# TYPE nv_inference_exec_count counter
nv_inference_exec_count{model="demo",version="2"} 2
# HELP nv_inference_request_duration_us Cumulative inference request duration in microseconds \
(includes cached requests)
# TYPE nv_inference_request_duration_us counter
nv_inference_request_duration_us{model="demo",version="2"} 70
# HELP nv_inference_queue_duration_us Cumulative inference queuing duration in microseconds \
(includes cached requests)
# TYPE nv_inference_queue_duration_us counter
nv_inference_queue_duration_us{model="demo",version="2"} 8
# HELP nv_inference_compute_input_duration_us Cumulative compute input duration in microseconds \
(does not include cached requests)
# TYPE nv_inference_compute_input_duration_us counter
nv_inference_compute_input_duration_us{model="demo",version="2"} 9
# HELP nv_inference_compute_infer_duration_us Cumulative compute inference duration in \
microseconds (does not include cached requests)
# TYPE nv_inference_compute_infer_duration_us counter
nv_inference_compute_infer_duration_us{model="demo",version="2"} 10
# HELP nv_inference_compute_output_duration_us Cumulative inference compute output duration in \
microseconds (does not include cached requests)
# TYPE nv_inference_compute_output_duration_us counter
nv_inference_compute_output_duration_us{model="demo",version="2"} 0
# HELP nv_inference_request_failure Number of failed inference requests, all batch sizes
# TYPE nv_inference_request_failure counter
nv_inference_request_failure{model="demo",reason="REJECTED",version="2"} 4
nv_inference_request_failure{model="demo",reason="CANCELED",version="2"} 0
nv_inference_request_failure{model="demo",reason="BACKEND",version="2"} 5
nv_inference_request_failure{model="demo",reason="OTHER",version="2"} 6
# HELP nv_inference_pending_request_count Instantaneous number of pending requests awaiting \
execution per-model.
# TYPE nv_inference_pending_request_count gauge
nv_inference_pending_request_count{model="demo",version="2"} 11
"""


@pytest.fixture(name="counts")
def make_counts() -> ModelCounts:
    """Counts that are all different."""
    counts = ModelCounts(
        "demo",
        "2",
        inference_count=21,
        success_count=3,
        success_ns=70_999,
        queue_ns=8_000,
        input_ns=9_999,
        infer_ns=10_001,
        output_ns=999,
        batches={4: BatchCounts(4, 1), 17: BatchCounts(17, 1)},
    )
    counts.failures |= {"REJECTED": 4, "BACKEND": 5, "OTHER": 6}
    return counts


def test_the_text_is_that_of_triton(counts: ModelCounts) -> None:
    assert render_triton_metrics([Reading(counts, waiting=11)]) == HELD


def test_no_name_ends_like_those_of_prometheus_clients_counters(counts: ModelCounts) -> None:
    assert "_total" not in render_triton_metrics([Reading(counts, waiting=11)])


def test_each_version_has_samples_of_its_own(counts: ModelCounts) -> None:
    readings = [Reading(counts, 0), Reading(ModelCounts("demo", "10"), 0)]
    text = render_triton_metrics(readings)
    assert len(re.findall(r"^# TYPE ", text, re.MULTILINE)) == 10
    for family in text_string_to_metric_families(text):
        versions = [sample.labels["version"] for sample in family.samples]
        assert versions.count("2") == versions.count("10") == len(versions) / 2


def test_without_models_there_are_families_and_no_samples() -> None:
    text = render_triton_metrics([])
    assert len(list(text_string_to_metric_families(text))) == 10
    assert all(line.startswith("# ") for line in text.splitlines())


@given(st.text(min_size=1).filter(lambda name: name == name.strip() and "\r" not in name))
def test_a_directory_of_any_name_gives_one_line_for_each_sample(name: str) -> None:
    text = render_triton_metrics([Reading(ModelCounts(name, "1"), waiting=0)])
    lines = text.removesuffix("\n").split("\n")
    assert len(lines) == len(HELD.splitlines())
    samples = [line for line in lines if not line.startswith("# ")]
    assert {unescape(line) for line in samples} == {name}


def unescape(line: str) -> str:
    """The label `model` of a line, read as the format's document says."""
    match = re.search(r'\{model="((?:[^"\\]|\\.)*)"', line, re.DOTALL)
    assert match
    words: dict[str, str] = {r"\\": "\\", r"\"": '"', r"\n": "\n"}
    find: Callable[[re.Match[str]], str] = lambda found: words[found[0]]  # noqa: E731
    return re.sub(r"\\.", find, match[1])
