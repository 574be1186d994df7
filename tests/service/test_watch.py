"""How the end of a request is counted."""

import asyncio

import pytest

from service.engine.model import Model
from service.errors import ClientLeftError, InvalidRequestError, ServiceError, UnavailableError
from service.metrics import Metrics
from service.statistics import Statistics
from service.watch import Watch

START_NS = 10**6


class Counted:
    """Metrics and statistics of a server of the demo."""

    def __init__(self, demo: Model) -> None:
        self.statistics = Statistics()
        self.metrics = Metrics("1.2", self.statistics)
        self.metrics.count_model(demo)

    @property
    def failures(self) -> dict[str, int]:
        """Failures of the demo by reason, without zeros."""
        counts = self.statistics.read("demo", "1").failures
        return {reason: count for reason, count in counts.items() if count}


@pytest.fixture
def counted(demo: Model) -> Counted:
    return Counted(demo)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (InvalidRequestError("no"), "OTHER"),
        (UnavailableError("full"), "REJECTED"),
        (ServiceError("ours"), "BACKEND"),
        (RuntimeError("a bug"), "BACKEND"),
        (asyncio.CancelledError(), "CANCELED"),
        (ClientLeftError("gone"), "CANCELED"),
    ],
    ids=repr,
)
def test_an_error_is_counted_and_passes(
    counted: Counted, error: BaseException, reason: str
) -> None:
    with pytest.raises(type(error)) as caught, Watch(counted.metrics, "demo", "1"):
        raise error
    assert caught.value is error
    assert counted.failures == {reason: 1}


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_the_end_of_the_process_is_not_counted(
    counted: Counted, error: type[BaseException]
) -> None:
    with pytest.raises(error), Watch(counted.metrics, "demo", "1"):
        raise error
    assert counted.failures == {}


def test_a_good_end_is_left_to_who_knows_the_answer(counted: Counted) -> None:
    with Watch(counted.metrics, "demo", "1"):
        pass
    counts = counted.statistics.read("demo", "1")
    assert (counts.success_count, counts.fail_count) == (0, 0)


def test_a_failure_takes_the_time_since_the_start(
    counted: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.perf_counter_ns", lambda: START_NS + 42)
    watch = Watch(counted.metrics, "demo", "1", START_NS)
    assert watch.elapsed_ns == 42
    with pytest.raises(InvalidRequestError), watch:
        raise InvalidRequestError("no")
    counts = counted.statistics.read("demo", "1")
    assert (counts.fail_count, counts.fail_ns) == (1, 42)


def test_a_model_may_be_named_on_the_way(counted: Counted) -> None:
    watch = Watch(counted.metrics)

    def refuse() -> None:
        watch.model, watch.version = "demo", "1"
        raise InvalidRequestError("no")

    with pytest.raises(InvalidRequestError), watch:
        refuse()
    assert counted.failures == {"OTHER": 1}


def test_without_a_model_no_model_is_charged(counted: Counted) -> None:
    with pytest.raises(InvalidRequestError), Watch(counted.metrics):
        raise InvalidRequestError("no")
    assert counted.failures == {}
