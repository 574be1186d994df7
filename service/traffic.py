"""What is counted beside the requests: connections, bytes that are held, threads."""

from collections.abc import Callable
from typing import get_args

from prometheus_client import CollectorRegistry, Counter, Gauge

from service.http.connection import Cut
from service.http.departure import Stage


class Traffic:
    """Metrics that belong to no model.

    Args:
        registry: of the application.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self._departures = Counter(
            "limelight_departures",
            "Clients that left before they had their answer, by what was being done for them.",
            ["stage"],
            registry=registry,
        )
        self._cuts = Counter(
            "limelight_connections_cut",
            "Connections ended because of a bound, by its setting.",
            ["setting"],
            registry=registry,
        )
        self._stuck = Gauge(
            "limelight_stuck_threads",
            "Inference threads whose run does not end.",
            registry=registry,
        )
        self._held = Gauge(
            "limelight_held_bytes",
            "Bytes of request bodies, and of answers that their clients have not taken yet.",
            ["kind"],
            registry=registry,
        )
        # A series that is there from the start can be told from one that is missing.
        for stage in get_args(Stage):
            self._departures.labels(stage)
        for setting in get_args(Cut):
            self._cuts.labels(setting)

    def count_stage(self, stage: Stage) -> None:
        """Count a client that left, by what was being done for it."""
        self._departures.labels(stage).inc()

    def count_cut(self, setting: Cut) -> None:
        """Count a connection that was ended because of a bound."""
        self._cuts.labels(setting).inc()

    def watch_threads(self, count_stuck: Callable[[], float]) -> None:
        """Show at each scrape how many inference threads are stuck."""
        self._stuck.set_function(count_stuck)

    def watch_held(self, kind: str, read_bytes: Callable[[], float]) -> None:
        """Show at each scrape how many bytes of a kind are held."""
        self._held.labels(kind).set_function(read_bytes)
