"""A worker's end of the pipe to its supervisor."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from itertools import count
from multiprocessing.connection import Connection
from typing import Final

from service.tally import Tally
from service.workers.messages import Ask, FromWorker, Go, Leave, Order, Sum, Tell, Told, ToWorker

# The supervisor answers after so many seconds at most, whatever other workers do; see `ledger`.
PATIENCE_S: Final = 5


class Link:
    """Tells the supervisor what it wants to know, on a thread of its own: the loop may be busy.

    Args:
        connection: the pipe.
        take: what this worker has counted, at the moment of the call.
        obey: called with each order, on that thread.
        on_orphan: called when the supervisor is gone, on that thread.
    """

    def __init__(
        self,
        connection: "Connection[FromWorker, ToWorker]",
        take: Callable[[], Tally],
        obey: Callable[[Order], object],
        on_orphan: Callable[[], object],
    ) -> None:
        self._connection = connection
        self._take = take
        self._obey = obey
        self._on_orphan = on_orphan
        self._sending = threading.Lock()
        self._numbers = count()
        self._sums: dict[int, Future[Tally]] = {}
        self._told = 0
        threading.Thread(target=self._read, name="link", daemon=True).start()

    def send(self, message: FromWorker) -> None:
        """Tell the supervisor something, if it is there."""
        with self._sending, suppress(OSError):
            self._connection.send(message)

    def tell(self) -> None:
        """Tell what this worker has counted."""
        # Taken within the lock: of two tallies the older one must not come after the newer one.
        with self._sending, suppress(OSError):
            self._connection.send(Told(self._take(), self._told))

    def gather(self) -> Tally:
        """What all workers have counted; of this one alone, where the supervisor is gone."""
        self.tell()
        number, asked = next(self._numbers), Future[Tally]()
        self._sums[number] = asked
        try:
            self.send(Ask(number))
            return asked.result(PATIENCE_S)
        except TimeoutError:
            return self._take()
        finally:
            del self._sums[number]

    def _read(self) -> None:
        try:
            while True:
                self._see(self._connection.recv())
        except (EOFError, OSError):
            self._on_orphan()

    def _see(self, message: ToWorker) -> None:
        match message:
            case Go() | Leave():
                self._obey(message)
            case Tell(number):
                self._told = number
                self.tell()
            case Sum(tally, number):
                asked = self._sums.get(number)
                if asked is not None:
                    asked.set_result(tally)
