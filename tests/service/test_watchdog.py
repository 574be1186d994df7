"""Stuck threads: they are named, they may recover, and the process ends where they do not."""

import asyncio
import logging
import threading
from collections.abc import Iterator

import pytest

from service.watchdog import Watchdog

PATIENCE_S = 10
TIMEOUT_S = 3


class Threads:
    """Runs as they are found, and how often the process was ended."""

    def __init__(self) -> None:
        self.runs: dict[str, float] = {}
        self.asked_s: set[float] = set()
        self.ended = threading.Event()
        self.ends = 0

    def find_stuck(self, older_than_s: float) -> dict[str, float]:
        self.asked_s.add(older_than_s)
        return dict(self.runs)

    def end(self) -> None:
        self.ends += 1
        self.ended.set()


@pytest.fixture
def threads() -> Threads:
    return Threads()


@pytest.fixture
def watchdog(threads: Threads) -> Watchdog:
    """A watchdog that looks only when it is told to, once a second by its own count."""
    return Watchdog(threads.find_stuck, TIMEOUT_S, threads.end, period_s=1)


@pytest.fixture
def fast(threads: Threads) -> Iterator[Watchdog]:
    """A watchdog with a short patience."""
    dog = Watchdog(threads.find_stuck, 0.05, threads.end, period_s=0.01)
    yield dog
    dog.stop()


def read_fault(watchdog: Watchdog) -> str | None:
    """The fault as it is now; mypy would take it for what it was before."""
    return watchdog.fault


def test_where_every_run_ends_there_is_no_fault(watchdog: Watchdog, threads: Threads) -> None:
    for _ in range(20):
        watchdog.look()
    assert (watchdog.fault, watchdog.stuck, threads.ends) == (None, 0, 0)
    assert threads.asked_s == {TIMEOUT_S}


def test_a_run_that_takes_too_long_is_a_fault_until_it_ends(
    watchdog: Watchdog, threads: Threads, caplog: pytest.LogCaptureFixture
) -> None:
    threads.runs = {"inference-1": 3.25, "inference-0": 4}
    watchdog.look()
    watchdog.look()
    assert watchdog.stuck == 2
    assert watchdog.fault == (
        "inference-0, inference-1: stuck for more than 3 s (LIMELIGHT_STUCK_TIMEOUT_S)"
    )
    del threads.runs["inference-0"]
    watchdog.look()
    assert (watchdog.stuck, threads.ends) == (1, 0)
    threads.runs.clear()
    watchdog.look()
    assert (watchdog.stuck, threads.ends) == (0, 0)
    assert read_fault(watchdog) is None
    lines = [(record.levelno, record.message) for record in caplog.records]
    assert sorted(lines) == [
        (logging.WARNING, "thread inference-0 is no longer stuck"),
        (logging.WARNING, "thread inference-1 is no longer stuck"),
        (
            logging.ERROR,
            "thread inference-0 is stuck: it has computed for 4.0 s, expected at most 3 s "
            "(LIMELIGHT_STUCK_TIMEOUT_S); the server is not ready",
        ),
        (
            logging.ERROR,
            "thread inference-1 is stuck: it has computed for 3.2 s, expected at most 3 s "
            "(LIMELIGHT_STUCK_TIMEOUT_S); the server is not ready",
        ),
    ]


def test_a_run_that_does_not_end_in_as_much_time_again_ends_the_process(
    watchdog: Watchdog, threads: Threads, caplog: pytest.LogCaptureFixture
) -> None:
    threads.runs = {"inference-2": 6.5}
    for _ in range(TIMEOUT_S):
        watchdog.look()
    assert threads.ends == 0
    watchdog.look()
    assert threads.ends == 1
    assert caplog.messages[-1] == (
        "thread inference-2 has computed for 6 s: the process ends with exit code 70"
    )


def test_a_run_that_was_paused_with_the_process_has_its_time_to_end(
    watchdog: Watchdog, threads: Threads
) -> None:
    threads.runs = {"inference-0": 3600}
    watchdog.look()
    assert threads.ends == 0


def test_one_stuck_run_after_another_does_not_end_the_process(
    watchdog: Watchdog, threads: Threads
) -> None:
    for _ in range(4):
        threads.runs = {"inference-0": 3.5}
        watchdog.look()
        watchdog.look()
        threads.runs.clear()
        watchdog.look()
    assert threads.ends == 0


async def test_a_thread_of_its_own_looks(fast: Watchdog, threads: Threads) -> None:
    fast.start()
    threads.runs = {"inference-0": 1}
    assert await asyncio.to_thread(threads.ended.wait, PATIENCE_S)


async def test_an_event_loop_that_turns_is_no_fault(fast: Watchdog, threads: Threads) -> None:
    fast.start()
    for _ in range(50):
        await asyncio.sleep(0.005)
    assert not threads.ended.is_set()


async def test_an_event_loop_that_stands_still_ends_the_process(
    fast: Watchdog, threads: Threads, caplog: pytest.LogCaptureFixture
) -> None:
    fast.start()
    assert threads.ended.wait(PATIENCE_S)  # blocks the loop
    assert caplog.messages == [
        "the event loop has stood still for 0.1 s: the process ends with exit code 70"
    ]


async def test_threads_that_do_not_end_when_the_server_stops_end_the_process(
    fast: Watchdog, threads: Threads, caplog: pytest.LogCaptureFixture
) -> None:
    fast.start()
    fast.limit(0.02)
    assert await asyncio.to_thread(threads.ended.wait, PATIENCE_S)
    assert caplog.messages == [
        "the threads do not end although the server stops: the process ends with exit code 70"
    ]


async def test_once_stopped_it_ends_nothing(fast: Watchdog, threads: Threads) -> None:
    fast.start()
    fast.limit(0.05)
    fast.stop()
    await asyncio.sleep(0.1)
    threads.asked_s.clear()
    assert not threads.ended.wait(0.05)  # nor does it mind that the loop stands still
    assert threads.asked_s == set()
