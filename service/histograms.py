"""Histograms of times, cheap to add to.

Those of prometheus_client take 17 calls for one number, each with a lock of its own, and an answer
has three. Here it is one, under the lock of whoever counts.
"""

import time
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate

from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector, CollectorRegistry


class Series:
    """What was observed under one set of labels.

    Args:
        bounds: of the buckets, in order; what is equal to one counts in its bucket.
    """

    __slots__ = ("bounds", "counts", "created_s", "sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0
        self.created_s = time.time()

    def observe(self, value: float) -> None:
        """Count a number."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value


class Histograms(Collector):
    """A histogram for each set of labels, as `prometheus_client.Histogram` shows them.

    Args:
        registry: that shows them.
        name: of the metric.
        text: what it is.
        bounds: of the buckets, without the infinite one.
    """

    def __init__(
        self, registry: CollectorRegistry, name: str, text: str, bounds: Sequence[float]
    ) -> None:
        self._name = name
        self._text = text
        self._bounds = bounds
        self._texts = [*map(str, bounds), "+Inf"]
        self._series: dict[tuple[tuple[str, str], ...], Series] = {}
        registry.register(self)

    def open(self, labels: Mapping[str, str]) -> Series:
        """The series of these labels; a new one unless it is there."""
        return self._series.setdefault(tuple(labels.items()), Series(self._bounds))

    def remove(self, labels: Mapping[str, str]) -> None:
        """Show a series no longer."""
        self._series.pop(tuple(labels.items()), None)

    def collect(self) -> Iterable[Metric]:
        """All series, as they are shown."""
        metric = Metric(self._name, self._text, "histogram")
        for key, series in self._series.copy().items():
            self._add_samples(metric, dict(key), series)
        yield metric

    def _add_samples(self, metric: Metric, labels: dict[str, str], series: Series) -> None:
        totals = list(accumulate(series.counts))
        for text, total in zip(self._texts, totals, strict=True):
            metric.add_sample(f"{self._name}_bucket", labels | {"le": text}, total)
        metric.add_sample(f"{self._name}_count", labels, totals[-1])
        metric.add_sample(f"{self._name}_sum", labels, series.sum)
        metric.add_sample(f"{self._name}_created", labels, series.created_s)
