"""Many clients at once, in one thread, and all that becomes of their requests."""

import selectors
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Final, Literal

from benchmarks.client import Connection

Outcome = Literal["answered", "cut", "unanswered", "refused"]

TICK_S: Final = 0.05
REFUSED_PAUSE_S: Final = 0.01


@dataclass(frozen=True, slots=True)
class Reply:
    """What became of a request.

    Attributes:
        number: of the request in the order of their beginning.
        outcome: answered as a whole, cut within the answer, left without one, or refused a
            connection.
        latency_s: from its beginning to its end.
        status: of the answer; 0 where there is none.
        head: of the answer, in lower case.
        body: of the answer.
    """

    number: int
    outcome: Outcome
    latency_s: float
    status: int = 0
    head: bytes = b""
    body: bytes = b""


class Crowd:
    """Clients on keep-alive connections.

    Args:
        url: of the server.
        requests: sent in turns.
        see: called with every reply, on the thread that runs the crowd.
        connections: open at most.
        rate_per_s: requests that begin in a second; each connection begins its next one at once
            unless given.
        most: requests that begin at all; as many as the time allows unless given.
    """

    def __init__(
        self,
        url: str,
        requests: Sequence[bytes],
        see: Callable[[Reply], None],
        *,
        connections: int = 8,
        rate_per_s: float | None = None,
        most: int | None = None,
    ) -> None:
        self._url = url
        self._requests = requests
        self._see = see
        self._rate_per_s = rate_per_s
        self._most = most
        self._numbers = count()
        self._idle: list[Connection | None] = [None] * connections
        self._begun = 0
        self._next_s = 0.0

    def run(self, is_over: Callable[[], bool] = lambda: False) -> None:
        """Ask until `is_over` or the last request has begun, and wait for what is in flight."""
        self._next_s = time.perf_counter()
        with selectors.DefaultSelector() as waiting, ExitStack() as ending:
            ending.callback(self._close, waiting)
            while True:
                is_ending = is_over() or self._begun == self._most
                if not is_ending:
                    self._begin_due(waiting)
                elif not waiting.get_map():
                    return
                for key, _ in waiting.select(self._find_pause_s()):
                    self._go_on(key.data, waiting)

    def _close(self, waiting: selectors.BaseSelector) -> None:
        in_flight = [key.data[1] for key in waiting.get_map().values()]
        for connection in [*self._idle, *in_flight]:
            if connection is not None:
                connection.close()

    def _find_pause_s(self) -> float:
        if self._rate_per_s is None or not self._idle:
            return TICK_S
        return min(max(self._next_s - time.perf_counter(), 0), TICK_S)

    def _begin_due(self, waiting: selectors.BaseSelector) -> None:
        while self._idle and self._begun != self._most:
            if self._rate_per_s is not None:
                if time.perf_counter() < self._next_s:
                    return
                self._next_s += 1 / self._rate_per_s
            if not self._begin(waiting):
                time.sleep(REFUSED_PAUSE_S)
                return

    def _begin(self, waiting: selectors.BaseSelector) -> bool:
        number = next(self._numbers)
        self._begun += 1
        connection = self._idle.pop()
        request = self._requests[number % len(self._requests)]
        if connection is None:
            try:
                connection = Connection(self._url, request, any_status=True)
            except OSError:
                self._idle.append(None)
                self._see(Reply(number, "refused", 0.0))
                return False
            connection.socket.setblocking(False)
        connection.begin(request)
        # Readable while it is still sent: the server may refuse it before its end.
        events = selectors.EVENT_WRITE | selectors.EVENT_READ
        waiting.register(connection.socket, events, (number, connection))
        return True

    def _go_on(self, item: tuple[int, Connection], waiting: selectors.BaseSelector) -> None:
        number, connection = item
        try:
            is_whole = self._move(connection)
        except OSError:
            outcome: Outcome = "cut" if connection.has_begun else "unanswered"
            self._end(item, waiting, keep=False)
            self._see(Reply(number, outcome, time.perf_counter() - connection.started_s))
            return
        if is_whole:
            latency_s = time.perf_counter() - connection.started_s
            head, body, status = connection.head, bytes(connection.body), connection.status
            self._end(
                item, waiting, keep=connection.is_sent and b"\r\nconnection: close" not in head
            )
            self._see(Reply(number, "answered", latency_s, status, head, body))
        elif (
            connection.is_sent and waiting.get_key(connection.socket).events != selectors.EVENT_READ
        ):
            waiting.modify(connection.socket, selectors.EVENT_READ, item)

    def _move(self, connection: Connection) -> bool:
        if not connection.is_sent:
            try:
                connection.send()
            except BlockingIOError:
                pass
            except OSError:
                if not connection.receive():  # the reason may have come before the reset
                    raise
                return True
        try:
            return connection.receive()
        except BlockingIOError:
            return False

    def _end(
        self, item: tuple[int, Connection], waiting: selectors.BaseSelector, *, keep: bool
    ) -> None:
        connection = item[1]
        waiting.unregister(connection.socket)
        if not keep:
            connection.close()
        self._idle.append(connection if keep else None)

    @contextmanager
    def beside(self) -> Iterator[None]:
        """Ask on another thread for as long as the block lasts.

        Raises:
            RuntimeError: if that thread failed.
        """
        stop, faults = threading.Event(), list[Exception]()

        def run() -> None:
            try:
                self.run(stop.is_set)
            except Exception as error:
                faults.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()
        if faults:
            raise RuntimeError("the crowd failed") from faults[0]


class Tally:
    """Counts of replies by outcome and status, and the latencies of those answered 200.

    Attributes:
        counts: by status, or by outcome where there is none.
        latencies_s: of those with status 200.
    """

    def __init__(self) -> None:
        self.counts: Counter[int | str] = Counter()
        self.latencies_s: list[float] = []

    def see(self, reply: Reply) -> None:
        """Count a reply."""
        self.counts[reply.status or reply.outcome] += 1
        if reply.status == 200:
            self.latencies_s.append(reply.latency_s)

    @property
    def answered(self) -> int:
        """Answers with status 200."""
        return self.counts[200]

    @property
    def failed(self) -> int:
        """All others."""
        return self.counts.total() - self.counts[200]


def find_percentile(values: Sequence[float], percent: float) -> float:
    """The value below which `percent` of them are; not a number where there are none."""
    if not values:
        return float("nan")
    return sorted(values)[min(len(values) * int(percent * 100) // 10000, len(values) - 1)]
