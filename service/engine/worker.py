"""One thread that computes what it is handed."""

import threading
import time
from collections.abc import Callable

from service.engine.job import AnyJob


class Worker:
    """A thread that waits for jobs, runs them, and says that it has.

    A lock of its own wakes it and no other thread; a condition costs more, and whom it wakes has
    to look for work.

    Args:
        name: of the thread.
        run: is called with the jobs of each run.
        finish: is called with this worker and those jobs after each run.

    Attributes:
        name: of the thread.
        busy_since_ns: when the run began that has not ended, by `time.perf_counter_ns`; any thread
            may read it.
    """

    def __init__(
        self,
        name: str,
        run: Callable[[list[AnyJob]], None],
        finish: Callable[["Worker", list[AnyJob]], None],
    ) -> None:
        self.name = name
        self.busy_since_ns: int | None = None
        self._run = run
        self._finish = finish
        self._jobs: list[AnyJob] | None = None
        self._bell = threading.Lock()
        self._bell.acquire()
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def join(self) -> None:
        """Block until the thread has ended."""
        self._thread.join()

    def hand(self, jobs: list[AnyJob]) -> None:
        """Wake the thread, which waits, with jobs to run; with none it ends."""
        self._jobs = jobs
        self._bell.release()

    def _serve(self) -> None:
        while self._serve_next():
            pass

    def _serve_next(self) -> bool:
        # In a function of its own: a thread that waits must not keep its last job's tensors.
        self._bell.acquire()
        jobs, self._jobs = self._jobs, None
        if not jobs:
            return False
        self.busy_since_ns = time.perf_counter_ns()
        self._run(jobs)
        self.busy_since_ns = None
        self._finish(self, jobs)
        return True
