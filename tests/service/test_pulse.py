"""The pulse: an inference of the server's own where no client had an answer of late."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from types import SimpleNamespace
from typing import Any

import pytest
import pytest_asyncio

from service.engine.model import Model
from service.engine.repository import Repository
from service.engine.scheduler import Scheduler
from service.errors import UnavailableError
from service.pulse import Pulse
from tests.service.engine.stand_ins import Opener, make_model
from tests.service.engine.work import Gate, hold, queue, submit

PATIENCE_S = 10
MakePulse = Callable[..., Pulse]


class Clock:
    """A time that stands still until it is told to go on."""

    def __init__(self) -> None:
        self.now_s = 500.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    # Not in the module `time` itself: event loops count by it.
    monkeypatch.setattr("service.pulse.time", SimpleNamespace(monotonic=clock))
    return clock


@pytest_asyncio.fixture
async def scheduler() -> AsyncIterator[Scheduler]:
    scheduler = Scheduler(1, 2, 1000)
    scheduler.start()
    yield scheduler
    await asyncio.to_thread(scheduler.close)


@pytest.fixture
def opener() -> Opener:
    return Opener()


@pytest.fixture
def model(opener: Opener) -> Model:
    return make_model("cpu", opener)


@pytest.fixture
def repository(model: Model) -> Repository:
    repository = Repository()
    repository.add(model)
    return repository


@pytest.fixture
def pulse(scheduler: Scheduler, repository: Repository, clock: Clock) -> Pulse:
    return Pulse(scheduler, repository)


async def beat(pulse: Pulse) -> None:
    """Look, and wait until what was begun has ended."""
    pulse.look()
    await end(pulse)


async def end(pulse: Pulse) -> None:
    """Wait until what was begun has ended."""
    if pulse.probe is not None:
        await asyncio.wait_for(pulse.probe, PATIENCE_S)


def count_runs(opener: Opener) -> int:
    return sum(len(session.feeds) for session in opener.sessions.values())


def fail(*_: Any) -> Any:
    raise RuntimeError("cudaErrorIllegalAddress in /opt/model.onnx")


async def test_without_requests_it_computes_through_the_scheduler(
    pulse: Pulse, opener: Opener, scheduler: Scheduler, clock: Clock
) -> None:
    for number in range(1, 4):
        clock.now_s += 60
        await beat(pulse)
        assert count_runs(opener) == scheduler.succeeded == number
        assert pulse.fault is None


async def test_where_a_request_succeeded_it_computes_nothing(
    pulse: Pulse, opener: Opener, scheduler: Scheduler, clock: Clock
) -> None:
    for _ in range(3):
        clock.now_s += 60
        await submit(scheduler, lambda: "answer")
        await beat(pulse)
    assert opener.sessions == {}
    assert pulse.fault is None


async def test_each_model_has_its_turn(
    pulse: Pulse, repository: Repository, opener: Opener
) -> None:
    other = Opener()
    second = make_model("cpu", other)
    second.version = "4"
    repository.add(second)
    for _ in range(4):
        await beat(pulse)
    assert (count_runs(opener), count_runs(other)) == (2, 2)


async def test_without_a_model_it_is_no_fault_to_compute_nothing(
    scheduler: Scheduler, clock: Clock, model: Model
) -> None:
    repository = Repository()
    pulse = Pulse(scheduler, repository)
    clock.now_s += 60
    await beat(pulse)
    assert pulse.fault is None
    repository.add(model)
    assert pulse.fault is None


async def test_failures_are_a_fault_once_they_last_and_until_one_succeeds(
    pulse: Pulse,
    model: Model,
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    run = model.lane.run
    monkeypatch.setattr(model.lane, "run", fail)
    clock.now_s += 15
    await beat(pulse)
    assert pulse.fault is None  # it may be one bad moment
    clock.now_s += 5
    await beat(pulse)
    assert pulse.fault == (
        "no inference has succeeded for 20 s: the last one failed; the log says why"
    )
    monkeypatch.setattr(model.lane, "run", run)
    await beat(pulse)
    assert pulse.fault is None
    lines = [(record.levelno, record.message, bool(record.exc_info)) for record in caplog.records]
    failed = (
        "model layer/3: an inference of the server's own failed: "
        "cudaErrorIllegalAddress in /opt/model.onnx"
    )
    assert lines == [
        (logging.ERROR, failed, True),
        (logging.WARNING, "inference succeeds again", False),
    ]


async def test_an_answer_that_is_not_finite_is_a_failure(
    scheduler: Scheduler, repository: Repository, clock: Clock
) -> None:
    repository.add(make_model("cpu", Opener(float("nan"))))
    pulse = Pulse(scheduler, repository)
    clock.now_s += 16
    await beat(pulse)
    assert pulse.fault == (
        "no inference has succeeded for 16 s: the last one failed; the log says why"
    )


async def test_a_request_that_succeeds_ends_the_fault(
    pulse: Pulse,
    model: Model,
    scheduler: Scheduler,
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(model.lane, "run", fail)
    clock.now_s += 16
    await beat(pulse)
    assert pulse.fault is not None
    await submit(scheduler, lambda: "answer")
    await beat(pulse)
    assert pulse.fault is None


async def test_one_that_does_not_end_is_a_fault_and_no_other_is_begun(
    pulse: Pulse, model: Model, clock: Clock, scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, run = Gate(), model.lane.run

    def wait(items: Any, check_wanted: Any) -> Any:
        gate()
        return run(items, check_wanted)

    monkeypatch.setattr(model.lane, "run", wait)
    pulse.look()
    await gate.wait_until_started()
    for _ in range(3):
        clock.now_s += 6
        pulse.look()
        await asyncio.sleep(0)
    assert scheduler.waiting == 0
    assert pulse.fault == (
        "no inference has succeeded for 18 s: one that began 18 s ago has not ended"
    )
    gate.opened.set()
    await end(pulse)
    assert pulse.fault is None


async def test_a_pause_of_the_process_is_no_fault(pulse: Pulse, clock: Clock) -> None:
    await beat(pulse)
    clock.now_s += 3600
    assert pulse.fault is None


async def test_a_full_queue_is_no_fault_while_requests_succeed(
    pulse: Pulse, scheduler: Scheduler, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    gates = [Gate() for _ in range(4)]
    tasks = [await hold(scheduler, gates[0])]
    tasks += [await queue(scheduler, gate) for gate in gates[1:3]]
    with pytest.raises(UnavailableError):
        await submit(scheduler, lambda: None)
    clock.now_s += 10
    await beat(pulse)
    gates[0].opened.set()
    assert await tasks[0] == "passed"
    clock.now_s += 10
    await beat(pulse)
    assert pulse.fault is None
    clock.now_s += 16  # from now on none succeeds
    await gates[1].wait_until_started()
    tasks.append(await queue(scheduler, gates[3]))
    await beat(pulse)
    assert pulse.fault == (
        "no inference has succeeded for 16 s: 2 requests are waiting already, expected fewer than "
        "2 (LIMELIGHT_MAX_QUEUE_REQUESTS); try again later"
    )
    assert [record.exc_info for record in caplog.records if record.levelno == logging.ERROR] == [
        None,
        None,
    ]
    for gate in gates:
        gate.opened.set()
    await asyncio.gather(*tasks)


async def test_it_goes_before_requests_without_a_priority(
    pulse: Pulse, opener: Opener, scheduler: Scheduler
) -> None:
    gate, order = Gate(), list[int]()
    first = await hold(scheduler, gate)
    second = await queue(scheduler, lambda: order.append(count_runs(opener)))
    pulse.look()
    await asyncio.sleep(0)
    gate.opened.set()
    await asyncio.gather(first, second)
    assert order == [1]


async def test_it_beats_until_it_is_stopped(
    scheduler: Scheduler, repository: Repository, opener: Opener
) -> None:
    pulse = Pulse(scheduler, repository, period_s=0.001)
    pulse.start()
    deadline_s = time.monotonic() + PATIENCE_S
    while count_runs(opener) < 3:
        assert time.monotonic() < deadline_s
        await asyncio.sleep(0.001)
    pulse.stop()
    await asyncio.sleep(0.01)
    runs = count_runs(opener)
    await asyncio.sleep(0.02)
    assert count_runs(opener) == runs


async def test_what_was_never_started_may_be_stopped(pulse: Pulse) -> None:
    pulse.stop()
