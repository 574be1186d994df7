"""What all workers have counted: those that live, and those that have ended."""

import threading
from collections.abc import Collection
from typing import Final

from service.tally import Tally, add
from service.workers.messages import Told

# A worker that is stopped, or has no processor time, costs a scrape no more than that.
PATIENCE_S: Final = 2


class Ledger:
    """Keeps what each worker told last, so that no sum falls when one ends.

    What is answered was told before, and is kept: a counter that fell would look to Prometheus
    as if all of it had been counted anew. Safe to use from any thread.
    """

    def __init__(self) -> None:
        self._told: dict[int, Told] = {}
        self._gone: set[int] = set()
        self._ended = Tally()
        self._changed = threading.Condition()

    def note(self, worker: int, told: Told) -> None:
        """Keep what a worker tells, in the place of what it told before."""
        with self._changed:
            self._told[worker] = told
            self._changed.notify_all()

    def bury(self, worker: int) -> None:
        """Keep what a worker had counted that has ended."""
        with self._changed:
            self._gone.add(worker)
            told = self._told.pop(worker, None)
            if told is not None:
                self._ended = add([self._ended, told.tally.bury()])
            self._changed.notify_all()

    def wait(self, workers: Collection[int], number: int) -> None:
        """Wait until workers have answered a question, or have ended; `PATIENCE_S` at most."""

        def is_settled() -> bool:
            living = [worker for worker in workers if worker not in self._gone]
            told = [self._told.get(worker) for worker in living]
            # One that has told nothing so far has just begun, and has counted all the same.
            return all(each is not None and each.number >= number for each in told)

        with self._changed:
            self._changed.wait_for(is_settled, PATIENCE_S)

    def add(self) -> Tally:
        """The sum, without versions that no worker serves any more."""
        with self._changed:
            living = add([told.tally for told in self._told.values()])
            self._ended = self._ended.keep(living)
            return add([living, self._ended])
