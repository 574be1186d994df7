"""The alarm rings for each job that is still there when its time has come, and never early."""

import gc
import queue
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from service.engine.alarm import Alarm
from service.engine.job import Job
from tests.service.engine.work import PATIENCE_S, Piece, make_job, make_lane

SECOND_NS = 10**9


class Bell:
    """Notes for whom it rang, and when."""

    def __init__(self) -> None:
        self.rung: queue.Queue[tuple[int, int]] = queue.Queue()

    def __call__(self, job: Job[Piece, Any]) -> None:
        self.rung.put((job.number, time.perf_counter_ns()))

    def wait(self) -> tuple[int, int]:
        return self.rung.get(timeout=PATIENCE_S)


@pytest.fixture
def bell() -> Bell:
    return Bell()


@pytest.fixture
def alarm(bell: Bell) -> Iterator[Alarm]:
    """An alarm that runs until the test ends."""
    alarm = Alarm(bell)
    alarm.start()
    yield alarm
    alarm.close()


def make(number: int) -> Job[Piece, Any]:
    return make_job(make_lane(), number)


def test_it_rings_when_the_time_has_come(alarm: Alarm, bell: Bell) -> None:
    job, when_ns = make(3), time.perf_counter_ns() + 2_300_000
    alarm.set(job, when_ns)
    number, rung_ns = bell.wait()
    assert number == 3
    assert rung_ns >= when_ns


def test_an_earlier_time_that_is_set_later_rings_first(alarm: Alarm, bell: Bell) -> None:
    now_ns, late, early = time.perf_counter_ns(), make(1), make(2)
    alarm.set(late, now_ns + SECOND_NS // 5)
    alarm.set(early, now_ns + SECOND_NS // 20)
    assert [bell.wait()[0], bell.wait()[0]] == [2, 1]


def test_a_time_that_has_passed_rings_at_once(alarm: Alarm, bell: Bell) -> None:
    job = make(4)
    alarm.set(job, 0)
    assert bell.wait()[0] == 4


def test_a_job_that_is_gone_does_not_ring_and_is_not_kept(alarm: Alarm, bell: Bell) -> None:
    gc.disable()
    try:
        gone, stays = make(1), make(2)
        alarm.set(gone, time.perf_counter_ns() + SECOND_NS // 20)
        alarm.set(stays, time.perf_counter_ns() + SECOND_NS // 10)
        del gone
        assert bell.wait()[0] == 2
    finally:
        gc.enable()


def test_closing_rings_for_all_at_once(bell: Bell) -> None:
    alarm, jobs = Alarm(bell), [make(number) for number in range(3)]
    alarm.start()
    for job in jobs:
        alarm.set(job, time.perf_counter_ns() + 3600 * SECOND_NS)
    alarm.close()
    assert sorted(bell.wait()[0] for _ in jobs) == [0, 1, 2]


def test_a_closed_alarm_rings_at_once(bell: Bell) -> None:
    alarm, job = Alarm(bell), make(5)
    alarm.start()
    alarm.close()
    alarm.set(job, time.perf_counter_ns() + 3600 * SECOND_NS)
    assert bell.wait()[0] == 5


def test_a_time_beyond_what_a_thread_can_wait_for_ends_nothing(alarm: Alarm, bell: Bell) -> None:
    far, near = make(1), make(2)
    alarm.set(far, time.perf_counter_ns() + 1000 * (2**64 - 1))  # the longest of config.pbtxt
    alarm.set(near, time.perf_counter_ns() + 1_000_000)
    assert bell.wait()[0] == 2
    assert threading.TIMEOUT_MAX < (2**64 - 1) / 1e6
