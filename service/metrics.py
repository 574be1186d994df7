"""What Prometheus reads: requests, times, and which provider runs each model."""

import threading
from dataclasses import dataclass
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from service.engine.model import Model
from service.histograms import Histograms
from service.histograms import Series as Times
from service.inference import Answer
from service.statistics import Reason, Statistics, find_reason
from service.tally import Tally
from service.traffic import Traffic
from service.triton_metrics import Reading

BUCKETS_SECONDS: Final = (
    0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0,
)  # fmt: skip
MEDIA_TYPE: Final = CONTENT_TYPE_LATEST
NO_MODEL: Final = ""  # label of requests that were refused before their model was known


@dataclass(frozen=True, slots=True)
class Series:
    """What is counted of every answer of one version; looking a series up costs as much again."""

    answered: Counter
    queue: Times
    compute: Times
    total: Times


class Metrics:
    """The metrics of one application, in a registry of their own.

    A registry per application, not the global one, lets a test build as many applications as
    it likes. Labels hold models that are served, never what a client sent: what is counted of a
    model that is no longer served is dropped.

    Args:
        version: of the server.
        statistics: count the same requests, and are the source of ``nv_inference_*``.

    Attributes:
        traffic: what is counted of connections, of bytes and of threads.
    """

    def __init__(self, version: str, statistics: Statistics) -> None:
        self._statistics = statistics
        self._models: dict[tuple[str, str], Model] = {}
        self._series: dict[tuple[str, str], Series] = {}
        # Models come and go on another thread: none may go between the look whether it is served
        # and the count, which would bring its series back.
        self._lock = threading.Lock()
        self._registry = CollectorRegistry()
        info = Gauge(
            "limelight_info", "Version of the server.", ["version"], registry=self._registry
        )
        info.labels(version).set(1)
        self._model = Gauge(
            "limelight_model_info",
            "Models that are served, and where they compute.",
            ["model", "version", "provider"],
            registry=self._registry,
        )
        self._requests = Counter(
            "limelight_requests",
            "Inference requests by outcome: ok, left by the client, or the status of an error.",
            ["model", "version", "outcome"],
            registry=self._registry,
        )
        self.traffic = Traffic(self._registry)
        self._queue = self._histograms("queue", "Time spent waiting for a thread.")
        self._compute = self._histograms("compute", "Time spent computing.")
        self._total = self._histograms(
            "total", "Time from the last byte of the request to the written answer."
        )

    def _histograms(self, name: str, text: str) -> Histograms:
        return Histograms(self._registry, f"limelight_{name}_seconds", text, BUCKETS_SECONDS)

    def count_model(self, model: Model) -> None:
        """Note that a model is served."""
        with self._lock:
            self._statistics.add(model.name, model.version)
            self._models[model.name, model.version] = model
            self._model.labels(model.name, model.version, model.provider).set(1)
            labels = {"model": model.name, "version": model.version}
            self._series[model.name, model.version] = Series(
                self._requests.labels(**labels, outcome="ok"),
                self._queue.open(labels),
                self._compute.open(labels),
                self._total.open(labels),
            )

    def forget_model(self, name: str, version: str) -> None:
        """Drop every series of a model that is no longer served."""
        with self._lock:
            self._models.pop((name, version), None)
            self._series.pop((name, version), None)
            self._statistics.forget(name, version)
            labels = {"model": name, "version": version}
            for metric in (self._model, self._requests):
                metric.remove_by_labels(labels)
            for times in (self._queue, self._compute, self._total):
                times.remove(labels)

    def count_execution(self, answer: Answer) -> None:
        """Count the run behind an answer."""
        self._statistics.count_execution(answer)

    def count_answer(self, answer: Answer, total_ns: int) -> None:
        """Count a request that was answered.

        Args:
            answer: to it.
            total_ns: from the whole body to the written answer.
        """
        with self._lock:
            series = self._series.get((answer.model, answer.version))
            if series is None:
                return
            self._statistics.count_success(answer, total_ns)
            series.answered.inc()
            series.queue.observe(answer.queue_ms / 1e3)
            series.compute.observe(answer.compute_ms / 1e3)
            series.total.observe(total_ns / 1e9)

    def count_error(self, model: str, version: str, status: int, total_ns: int) -> None:
        """Count a request to a model that is served, or to none, that ended in an error.

        Args:
            model: its name, or `NO_MODEL`.
            version: of it, or `NO_MODEL`.
            status: of the error.
            total_ns: from the whole body to the error.
        """
        self._count_failure(model, version, find_reason(status), str(status), total_ns)

    def count_departure(self, model: str, version: str, total_ns: int) -> None:
        """Count a request cancelled before its answer: its client left, or the server stopped.

        Args:
            model: its name, or `NO_MODEL`.
            version: of it, or `NO_MODEL`.
            total_ns: from the whole body to the departure.
        """
        self._count_failure(model, version, "CANCELED", "left", total_ns)

    def _count_failure(
        self, model: str, version: str, reason: Reason, outcome: str, total_ns: int
    ) -> None:
        with self._lock:
            if model == NO_MODEL or (model, version) in self._models:
                self._statistics.count_failure(model, version, reason, total_ns)
                self._requests.labels(model, version, outcome).inc()

    def take(self) -> Tally:
        """All that was counted, at this moment."""
        models = self._models.copy()
        readings = [
            Reading(counts, models[counts.name, counts.version].lane.waiting)
            for counts in self._statistics.read_all()
            if (counts.name, counts.version) in models
        ]
        return Tally(list(self._registry.collect()), readings)

    def render(self) -> bytes:
        """All metrics in Prometheus' text format."""
        return self.take().render()
