"""The metrics ``nv_inference_*``: Triton's names, labels, texts and meanings.

https://github.com/triton-inference-server/server/blob/main/docs/user_guide/metrics.md; the texts
and the label `reason` are in src/metrics.cc and src/metric_model_reporter.cc of Triton's core. The
lines are written here because prometheus_client ends the name of every counter with ``_total``:
Triton does not, and its dashboards would find nothing.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from service.statistics import REASONS, ModelCounts

FAILURE: Final = "nv_inference_request_failure"
PENDING: Final = "nv_inference_pending_request_count"
COUNTERS: Final[dict[str, tuple[str, Callable[[ModelCounts], int]]]] = {
    "nv_inference_request_success": (
        "Number of successful inference requests, all batch sizes",
        lambda counts: counts.success_count,
    ),
    "nv_inference_count": (
        "Number of inferences performed (does not include cached requests)",
        lambda counts: counts.inference_count,
    ),
    "nv_inference_exec_count": (
        "Number of model executions performed (does not include cached requests)",
        lambda counts: counts.execution_count,
    ),
    "nv_inference_request_duration_us": (
        "Cumulative inference request duration in microseconds (includes cached requests)",
        lambda counts: counts.success_ns // 1000,
    ),
    "nv_inference_queue_duration_us": (
        "Cumulative inference queuing duration in microseconds (includes cached requests)",
        lambda counts: counts.queue_ns // 1000,
    ),
    "nv_inference_compute_input_duration_us": (
        "Cumulative compute input duration in microseconds (does not include cached requests)",
        lambda counts: counts.input_ns // 1000,
    ),
    "nv_inference_compute_infer_duration_us": (
        "Cumulative compute inference duration in microseconds (does not include cached requests)",
        lambda counts: counts.infer_ns // 1000,
    ),
    "nv_inference_compute_output_duration_us": (
        "Cumulative inference compute output duration in microseconds (does not include cached "
        "requests)",
        lambda counts: counts.output_ns // 1000,
    ),
}


@dataclass(frozen=True, slots=True)
class Reading:
    """One version of a model at the moment of a scrape.

    Attributes:
        counts: of it.
        waiting: requests that wait for a thread.
    """

    counts: ModelCounts
    waiting: int


def render_triton_metrics(readings: Sequence[Reading]) -> str:
    """The lines of all families in Prometheus' text format."""
    lines: list[str] = []
    for name, (text, find) in COUNTERS.items():
        lines += render_head(name, "counter", text)
        lines += [f"{name}{label(each.counts)} {find(each.counts)}" for each in readings]
    lines += render_head(FAILURE, "counter", "Number of failed inference requests, all batch sizes")
    lines += [
        f"{FAILURE}{label(each.counts, reason=reason)} {each.counts.failures[reason]}"
        for each in readings
        for reason in REASONS
    ]
    text = "Instantaneous number of pending requests awaiting execution per-model."
    lines += render_head(PENDING, "gauge", text)
    lines += [f"{PENDING}{label(each.counts)} {each.waiting}" for each in readings]
    return "\n".join([*lines, ""])


def render_head(name: str, kind: str, text: str) -> list[str]:
    """The comments that open a family."""
    return [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]


def label(counts: ModelCounts, **others: str) -> str:
    """The labels of a sample, by name."""
    labels = {"model": counts.name, "version": counts.version} | others
    return "{" + ",".join(f'{name}="{escape(labels[name])}"' for name in sorted(labels)) + "}"


def escape(text: str) -> str:
    r"""A label's value, as https://prometheus.io/docs/instrumenting/exposition_formats/ has it.

    The directory of a single model may have any name.
    """
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
