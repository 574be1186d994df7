"""All that was counted at one moment, by one process or by several together."""

import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from prometheus_client import generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.samples import Sample

from service.statistics import BatchCounts, ModelCounts
from service.triton_metrics import Reading, render_triton_metrics

# What says that something is there, and not how much of it, is the same in all processes.
FACTS: Final = ("limelight_info", "limelight_model_info")
CREATED: Final = "_created"  # when a series began

Key = tuple[str, tuple[tuple[str, str], ...]]


@dataclass(frozen=True, slots=True)
class Tally:
    """What was counted; it does not change any more, and can be sent to another process.

    Attributes:
        families: of prometheus_client.
        readings: of the versions that are served, the source of ``nv_inference_*``.
    """

    families: Sequence[Metric] = ()
    readings: Sequence[Reading] = ()

    def collect(self) -> Iterable[Metric]:
        """The families, as prometheus_client asks for them."""
        return self.families

    def render(self) -> bytes:
        """All of it in Prometheus' text format."""
        return generate_latest(self) + render_triton_metrics(self.readings).encode()

    def bury(self) -> "Tally":
        """What stays of a process that has ended: what it counted, not what it was doing."""
        lasting = [each for each in self.families if each.type != "gauge"]
        return Tally(lasting, [Reading(each.counts, 0) for each in self.readings])

    def keep(self, served: "Tally") -> "Tally":
        """The part that is about versions which are in `served`, too, or about none."""
        versions = {(each.counts.name, each.counts.version) for each in served.readings}
        families = []
        for family in self.families:
            kept = copy_head(family)
            kept.samples = [each for each in family.samples if is_about(each, versions)]
            families.append(kept)
        readings = [r for r in self.readings if (r.counts.name, r.counts.version) in versions]
        return Tally(families, readings)


def copy_head(family: Metric) -> Metric:
    """A family of the same name and kind, without samples."""
    return Metric(family.name, family.documentation, family.type, family.unit)


def is_about(sample: Sample, versions: set[tuple[str, str]]) -> bool:
    """Whether a sample is about one of these versions, or about none at all."""
    name = sample.labels.get("model")
    return not name or (name, sample.labels.get("version", "")) in versions


def add(tallies: Sequence[Tally]) -> Tally:
    """What several processes have counted together, in the order of the first that has it."""
    families: dict[str, Metric] = {}
    for tally in tallies:
        for family in tally.families:
            families.setdefault(family.name, copy_head(family)).samples += family.samples
    for family in families.values():
        family.samples = add_samples(family.name, family.samples)
    return Tally(list(families.values()), add_readings(tallies))


def add_samples(family: str, samples: Iterable[Sample]) -> list[Sample]:
    """One sample for each name and labels."""
    sums: dict[Key, Sample] = {}
    for sample in samples:
        key = sample.name, tuple(sorted(sample.labels.items()))
        before = sums.get(key)
        if before is None:
            sums[key] = sample
        else:
            put = find_rule(family, sample.name)
            sums[key] = before._replace(value=put(before.value, sample.value))
    return list(sums.values())


def find_rule(family: str, name: str) -> Callable[[float, float], float]:
    """What makes one value of those of two processes."""
    if family in FACTS:
        return max
    return min if name.endswith(CREATED) else operator.add


def add_readings(tallies: Sequence[Tally]) -> list[Reading]:
    """One reading for each version, in the order of their names and versions."""
    sums: dict[tuple[str, int], Reading] = {}
    for reading in (each for tally in tallies for each in tally.readings):
        key = reading.counts.name, int(reading.counts.version)
        before = sums.get(key, Reading(ModelCounts(key[0], reading.counts.version), 0))
        counts = add_counts(before.counts, reading.counts)
        sums[key] = Reading(counts, before.waiting + reading.waiting)
    return [sums[key] for key in sorted(sums)]


def add_counts(one: ModelCounts, other: ModelCounts) -> ModelCounts:
    """What two processes have counted of the same version."""
    total = one.copy()
    for name in (
        "inference_count", "success_count", "success_ns", "queue_ns", "input_ns", "infer_ns",
        "output_ns", "fail_ns",
    ):  # fmt: skip
        setattr(total, name, getattr(one, name) + getattr(other, name))
    total.last_inference_ms = max(one.last_inference_ms, other.last_inference_ms)
    for reason, count in other.failures.items():
        total.failures[reason] += count
    for rows, batch in other.batches.items():
        mine = total.batches.setdefault(rows, BatchCounts(rows))
        for name in ("count", "input_ns", "infer_ns", "output_ns"):
            setattr(mine, name, getattr(mine, name) + getattr(batch, name))
    return total
