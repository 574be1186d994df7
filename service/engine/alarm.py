"""The end of a job's wait for company, on time to a fraction of a millisecond."""

import threading
import time
import weakref
from collections.abc import Callable
from heapq import heappop, heappush

from service.engine.job import AnyJob


class Alarm:
    """Calls back for each job when its time has come, from a thread of its own.

    An event loop would do it in whole milliseconds: uvloop rounds to them, and half a
    millisecond down to none. No job is kept alive here, so those that started early cost nothing.

    Args:
        ring: is called with each job that is still there when its time has come.
    """

    def __init__(self, ring: Callable[[AnyJob], None]) -> None:
        self._ring = ring
        self._times: list[tuple[int, int, weakref.ref[AnyJob]]] = []
        self._changed = threading.Condition(threading.Lock())
        self._closing = False
        self._thread = threading.Thread(target=self._serve, name="inference-alarm", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def close(self) -> None:
        """Ring for all jobs at once, then end the thread; blocks until it has ended."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join()

    def set(self, job: AnyJob, when_ns: int) -> None:
        """Ring for `job` at `when_ns` of `time.perf_counter_ns`, or at once when closed."""
        entry = (when_ns, job.number, weakref.ref(job))
        with self._changed:
            heappush(self._times, entry)
            if self._times[0] is entry:
                self._changed.notify()
            is_closed = self._closing
        if is_closed:
            self._ring(job)

    def _serve(self) -> None:
        while self._serve_next():
            pass

    def _serve_next(self) -> bool:
        # In a function of its own: a thread that waits must keep no job.
        reference = self._wait()
        if reference is None:
            return False
        job = reference()
        if job is not None:
            self._ring(job)
        return True

    def _wait(self) -> weakref.ref[AnyJob] | None:
        with self._changed:
            while True:
                if not self._times:
                    if self._closing:
                        return None
                    self._changed.wait()
                    continue
                left_ns = self._times[0][0] - time.perf_counter_ns()
                if left_ns <= 0 or self._closing:
                    return heappop(self._times)[2]
                self._changed.wait(min(left_ns / 1e9, threading.TIMEOUT_MAX))
