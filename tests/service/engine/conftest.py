"""What tests of the engine share: schedulers whose threads end with the test."""

from collections.abc import Callable, Iterator

import pytest

from service.engine.scheduler import Scheduler
from tests.service.engine.work import Gate

MakeScheduler = Callable[..., Scheduler]


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.fixture
def make_scheduler(gate: Gate) -> Iterator[MakeScheduler]:
    """Builds schedulers whose threads run; their threads end with the test."""
    schedulers: list[Scheduler] = []

    def make(threads: int = 1, max_requests: int = 100, max_bytes: int = 1000) -> Scheduler:
        scheduler = Scheduler(threads, max_requests, max_bytes)
        scheduler.start()
        schedulers.append(scheduler)
        return scheduler

    yield make
    gate.opened.set()
    for scheduler in schedulers:
        scheduler.close()
