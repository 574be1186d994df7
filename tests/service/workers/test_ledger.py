"""What all workers have counted, those that have ended among them."""

import threading

import pytest

from service.statistics import ModelCounts
from service.tally import Tally
from service.triton_metrics import Reading
from service.workers import ledger as ledgers
from service.workers.ledger import Ledger
from service.workers.messages import Told

PATIENCE_S = 60


def tell(answers: int, model: str = "demo", number: int = 0) -> Told:
    """What a worker says that has answered so many requests."""
    counts = ModelCounts(model, "1", success_count=answers)
    return Told(Tally([], [Reading(counts, waiting=1)]), number)


def read(ledger: Ledger) -> dict[str, tuple[int, int]]:
    """Answers and waiting requests by model."""
    readings = ledger.add().readings
    return {r.counts.name: (r.counts.success_count, r.waiting) for r in readings}


def test_the_last_that_each_worker_told_is_added() -> None:
    ledger = Ledger()
    for worker, answers in ((1, 3), (2, 40), (1, 5)):
        ledger.note(worker, tell(answers))
    assert read(ledger) == {"demo": (45, 2)}


def test_the_sum_does_not_fall_when_workers_end() -> None:
    ledger = Ledger()
    for worker, answers in ((1, 3), (2, 40), (3, 500)):
        ledger.note(worker, tell(answers))
    ledger.bury(1)
    ledger.bury(3)
    ledger.bury(4)  # which told nothing
    assert read(ledger) == {"demo": (543, 1)}


def test_what_was_counted_of_models_that_are_gone_is_dropped_for_good() -> None:
    ledger = Ledger()
    ledger.note(1, tell(3, "old"))
    ledger.bury(1)
    ledger.note(2, tell(40))
    assert read(ledger) == {"demo": (40, 1)}
    ledger.note(2, tell(1, "old"))
    assert read(ledger) == {"old": (1, 1)}


def test_who_asks_waits_until_all_have_answered_or_ended() -> None:
    ledger = Ledger()
    for worker in (1, 2):
        ledger.note(worker, tell(3, number=6))
    waiting = threading.Thread(target=ledger.wait, args=([1, 2], 7))
    waiting.start()
    ledger.note(1, tell(4, number=7))
    ledger.bury(2)
    waiting.join(PATIENCE_S)
    assert not waiting.is_alive()
    assert read(ledger) == {"demo": (7, 1)}


def test_a_worker_that_does_not_answer_is_not_waited_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ledgers, "PATIENCE_S", 0.01)
    ledger = Ledger()
    ledger.note(1, tell(3, number=6))
    ledger.wait([1], 7)
    assert read(ledger) == {"demo": (3, 1)}
