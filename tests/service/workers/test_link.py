"""A worker's end of the pipe, and what its supervisor hears."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any

import pytest

from service.statistics import ModelCounts
from service.tally import Tally
from service.triton_metrics import Reading
from service.workers import link as links
from service.workers.link import Link
from service.workers.messages import Ask, Go, Leave, Loaded, Order, Sum, Tell, Told

PATIENCE_S = 60


def count(answers: int) -> Tally:
    return Tally([], [Reading(ModelCounts("demo", "1", success_count=answers), 0)])


@dataclass
class Ends:
    """A link, and the other end of its pipe."""

    supervisor: "Connection[Any, Any]"
    link: Link
    orders: SimpleQueue[Order]
    orphaned: threading.Event


@pytest.fixture(name="ends")
def make_ends() -> Iterator[Ends]:
    """A worker that has answered three requests."""
    supervisor, worker = Pipe()
    orders, orphaned = SimpleQueue[Order](), threading.Event()
    link = Link(worker, lambda: count(3), orders.put, orphaned.set)
    yield Ends(supervisor, link, orders, orphaned)
    supervisor.close()
    assert orphaned.wait(PATIENCE_S)
    worker.close()


def receive(ends: Ends) -> Any:
    assert ends.supervisor.poll(PATIENCE_S)
    return ends.supervisor.recv()


def test_a_worker_learns_when_to_say_that_it_is_ready_and_when_to_leave(ends: Ends) -> None:
    ends.link.send(Loaded("Limelight"))
    assert receive(ends) == Loaded("Limelight")
    for order in (Go(), Leave()):
        ends.supervisor.send(order)
        assert ends.orders.get(timeout=PATIENCE_S) == order
    assert not ends.orphaned.is_set()


def test_a_worker_learns_that_its_supervisor_is_gone(ends: Ends) -> None:
    ends.supervisor.close()
    assert ends.orphaned.wait(PATIENCE_S)
    ends.link.send(Loaded("Limelight"))  # to nobody


def test_a_worker_says_what_it_has_counted_when_it_is_asked(ends: Ends) -> None:
    ends.supervisor.send(Tell(8))
    assert receive(ends) == Told(count(3), 8)


def test_a_worker_is_told_what_all_have_counted(ends: Ends) -> None:
    found: list[Tally] = []
    asking = threading.Thread(target=lambda: found.append(ends.link.gather()))
    asking.start()
    assert receive(ends) == Told(count(3), 0)
    ask = receive(ends)
    assert isinstance(ask, Ask)
    ends.supervisor.send(Sum(count(99), ask.number + 1))  # of a question that nobody has
    ends.supervisor.send(Sum(count(45), ask.number))
    asking.join(PATIENCE_S)
    assert found == [count(45)]


def test_without_an_answer_a_worker_says_what_it_has_counted_itself(
    ends: Ends, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(links, "PATIENCE_S", 0.01)
    assert ends.link.gather() == count(3)


def test_a_worker_without_a_supervisor_counts_for_itself(
    ends: Ends, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(links, "PATIENCE_S", 0.01)
    ends.supervisor.close()
    assert ends.link.gather() == count(3)
