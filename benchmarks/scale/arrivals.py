"""Requests that come at random times, whether the server keeps up or not."""

import selectors
import time
from collections import deque
from collections.abc import Iterator

import numpy as np

from benchmarks.client import Connection, send_part


class Arrivals:
    """Clients that ask once each, at times of a Poisson process, over connections that stay open.

    Args:
        url: of the server.
        request: all its bytes.
        per_second: requests, on average.
        seed: of the times.
    """

    def __init__(self, url: str, request: bytes, per_second: float, seed: int) -> None:
        self._url, self._request = url, request
        self._gaps_s = draw_gaps(per_second, seed)
        self._idle: deque[Connection] = deque()
        self._waiting = selectors.SelectSelector()  # epoll rounds up to 1 ms
        self._due_s: dict[Connection, float] = {}
        self._latencies_s: list[float] = []

    def run(self, duration_s: float) -> list[float]:
        """Ask for a while, wait for the last answer, and return the seconds of each.

        A latency counts from the time at which the request was due: a client that could not ask in
        time has waited as well.
        """
        started_s = time.perf_counter()
        due_s = started_s + next(self._gaps_s)
        while due_s < started_s + duration_s or self._due_s:
            now_s = time.perf_counter()
            while due_s <= now_s and due_s < started_s + duration_s:
                self._begin(due_s)
                due_s += next(self._gaps_s)
            self._move(max(0.0, due_s - now_s))
        for connection in self._idle:
            connection.close()
        self._waiting.close()
        return self._latencies_s

    def _begin(self, due_s: float) -> None:
        connection = self._idle.pop() if self._idle else Connection(self._url, self._request)
        connection.socket.setblocking(False)
        connection.begin()
        self._due_s[connection] = due_s
        self._waiting.register(connection.socket, selectors.EVENT_WRITE, connection)

    def _move(self, timeout_s: float) -> None:
        for key, _ in self._waiting.select(timeout_s):
            connection = key.data
            if not connection.is_sent:
                send_part(connection, self._waiting)
            elif connection.receive():
                self._latencies_s.append(time.perf_counter() - self._due_s.pop(connection))
                self._waiting.unregister(connection.socket)
                self._idle.append(connection)


def draw_gaps(per_second: float, seed: int) -> Iterator[float]:
    """Seconds between one request and the next."""
    generator = np.random.default_rng(seed)
    while True:
        yield from generator.exponential(1 / per_second, 1024)
