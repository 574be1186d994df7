"""A server whose thread is busy, so that what it is sent waits in the queue."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from service.engine.lane import Lane
from service.inference import Schedule
from tests.service.http.live_server import read_answer, wait_until
from tests.service.routes.front import Front
from tests.service.routes.requests import write


class Gate:
    """What a thread of the server is busy with."""

    def __init__(self) -> None:
        self.started, self.release = threading.Event(), threading.Event()

    def run(self, items: Any, _: Callable[[], None]) -> Any:
        """Compute until released."""
        self.started.set()
        assert self.release.wait(60)
        return items


@contextmanager
def occupied(front: Front) -> Iterator[Gate]:
    """The thread of the server computes something else meanwhile."""

    class Load:
        rows, size_bytes = 1, 1

    gate = Gate()
    lane: Lane[Any, Any] = Lane(gate.run)
    loop = front.server.opened[0].loop
    loop.call_soon_threadsafe(
        lambda: loop.create_task(front.state.scheduler.submit(lane, Load(), Schedule()))
    )
    assert gate.started.wait(60)
    try:
        yield gate
    finally:
        gate.release.set()


def wait_for_pending(front: Front, count: int = 1) -> None:
    """Wait until so many requests are in the queue."""
    wait_until(lambda: front.state.scheduler.waiting == count)
    assert len(front.server.server.server_state.tasks) == count


def expect_nothing_held(front: Front) -> None:
    """No byte of a body or an answer is held, and nothing is pending."""
    holdings = front.state.holdings
    wait_until(lambda: not holdings.bodies.in_use_bytes + holdings.answers.in_use_bytes)
    wait_until(lambda: not front.server.server.server_state.tasks)
    assert front.state.scheduler.waiting == 0


@contextmanager
def connect_known(front: Front) -> Iterator[socket.socket]:
    """A connection whose head the server knows."""
    with front.server.connect() as client:
        client.sendall(write())
        assert read_answer(client)[0] == 200
        front.log.lines.clear()
        yield client
