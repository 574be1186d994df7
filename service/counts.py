"""What `/metrics` and the statistics say: the counts of this process and of those beside it."""

import asyncio
from collections.abc import Sequence
from typing import Protocol

from service.metrics import Metrics
from service.statistics import ModelCounts, Statistics
from service.tally import Tally


class Peers(Protocol):
    """The other processes that serve on the same port."""

    def gather(self) -> Tally:
        """What all have counted, this one among them; blocks."""
        ...


class Counts:
    """Reads what was counted.

    Attributes:
        peers: what to ask for the sum of all workers; this process is alone where absent.
    """

    def __init__(self, metrics: Metrics, statistics: Statistics) -> None:
        self._metrics = metrics
        self._statistics = statistics
        self.peers: Peers | None = None

    def render(self) -> bytes:
        """All metrics in Prometheus' text format; blocks."""
        return self._metrics.render() if self.peers is None else self.peers.gather().render()

    def read_all(self) -> list[ModelCounts]:
        """Counts of all versions, by name and version; blocks."""
        if self.peers is None:
            return self._statistics.read_all()
        return [reading.counts for reading in self.peers.gather().readings]

    async def read(self, name: str, versions: Sequence[str]) -> list[ModelCounts]:
        """Counts of some versions of a model; zeros where there are none."""
        if self.peers is None:
            return [self._statistics.read(name, version) for version in versions]
        counted = await asyncio.to_thread(self.read_all)
        found = {each.version: each for each in counted if each.name == name}
        return [found.get(version) or ModelCounts(name, version) for version in versions]
