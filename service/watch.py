"""One request on its way to an answer: how long it took, and how it ended."""

import asyncio
import time
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from service.errors import ClientLeftError, ServiceError
from service.metrics import NO_MODEL, Metrics


@dataclass(slots=True)
class Watch:
    """Counts a request that ends in an error within its ``with`` block; any thread may name it.

    Attributes:
        metrics: that count.
        model: name of the model that is asked, or `NO_MODEL` while it is not known.
        version: of it, or `NO_MODEL`.
        started_ns: when the body was whole, by `time.perf_counter_ns`.
    """

    metrics: Metrics
    model: str = NO_MODEL
    version: str = NO_MODEL
    started_ns: int = field(default_factory=time.perf_counter_ns)

    @property
    def elapsed_ns(self) -> int:
        """Time since the body was whole."""
        return time.perf_counter_ns() - self.started_ns

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None
    ) -> None:
        """Count an error, and let it pass."""
        if isinstance(error, asyncio.CancelledError | ClientLeftError):
            self.metrics.count_departure(self.model, self.version, self.elapsed_ns)
        elif isinstance(error, Exception):
            status = error.status if isinstance(error, ServiceError) else ServiceError.status
            self.metrics.count_error(self.model, self.version, status, self.elapsed_ns)
