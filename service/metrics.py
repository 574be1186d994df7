"""What Prometheus reads: requests, times, and which provider runs each model."""

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from service.engine.model import Model
from service.inference import Answer

BUCKETS_SECONDS: Final = (
    0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0,
)  # fmt: skip
MEDIA_TYPE: Final = CONTENT_TYPE_LATEST


class Metrics:
    """The metrics of one application, in a registry of their own.

    A registry per application, not the global one, lets a test build as many applications as
    it likes. Labels hold models that are served, never what a client sent.
    """

    def __init__(self, version: str) -> None:
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
        self._queue = self._histogram("queue", "Time spent waiting for a thread.")
        self._compute = self._histogram("compute", "Time spent computing.")
        self._total = self._histogram("total", "Time to wait, compute and write the answer.")

    def _histogram(self, name: str, text: str) -> Histogram:
        return Histogram(
            f"limelight_{name}_seconds",
            text,
            ["model", "version"],
            buckets=BUCKETS_SECONDS,
            registry=self._registry,
        )

    def count_model(self, model: Model) -> None:
        """Note that a model is served."""
        self._model.labels(model.name, model.version, model.provider).set(1)

    def count_answer(self, answer: Answer, total_s: float) -> None:
        """Count a request that was answered."""
        labels = (answer.model, answer.version)
        self._requests.labels(*labels, "ok").inc()
        self._queue.labels(*labels).observe(answer.queue_ms / 1000)
        self._compute.labels(*labels).observe(answer.compute_ms / 1000)
        self._total.labels(*labels).observe(total_s)

    def count_error(self, model: str, version: str, status: int) -> None:
        """Count a request to a model that is served, or to none, that ended in an error."""
        self._requests.labels(model, version, str(status)).inc()

    def count_departure(self, model: str, version: str) -> None:
        """Count a request cancelled before its answer: its client left, or the server stopped."""
        self._requests.labels(model, version, "left").inc()

    def render(self) -> bytes:
        """All metrics in Prometheus' text format."""
        return generate_latest(self._registry)
