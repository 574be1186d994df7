"""Looks after the threads: a run that does not end, or an event loop that stands still."""

import asyncio
import logging
import os
import threading
import time
from collections.abc import Callable, Mapping
from typing import Final

PERIOD_S: Final = 1.0
EXIT_CODE: Final = 70  # EX_SOFTWARE of sysexits.h: an internal fault

log = logging.getLogger("limelight")


def end_process() -> None:
    """End the process, whatever its threads do.

    A thread within C code cannot be stopped: an orderly exit would wait for it.
    """
    logging.shutdown()
    os._exit(EXIT_CODE)


class Watchdog:
    """Says which threads are stuck, and ends the process where one of them stays so.

    Its thread is its own, as an event loop that stands still runs no task. It counts its looks
    instead of trusting the clock alone: a process that was paused has not been stuck.

    Args:
        find_stuck: runs that take longer than so many seconds: seconds, by the thread's name.
        stuck_timeout_s: longest time of a run, and the time that a stuck one has to end.
        end: ends the process.
        period_s: between two looks.
    """

    def __init__(
        self,
        find_stuck: Callable[[float], Mapping[str, float]],
        stuck_timeout_s: float,
        end: Callable[[], object] = end_process,
        period_s: float = PERIOD_S,
    ) -> None:
        self._find_stuck = find_stuck
        self._timeout_s = stuck_timeout_s
        self._end = end
        self._period_s = period_s
        self._looks: dict[str, int] = {}
        self._missed = 0
        self._deadline_s: float | None = None
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watchdog", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def stuck(self) -> int:
        """How many threads are stuck."""
        return len(self._looks)

    @property
    def fault(self) -> str | None:
        """Why the server should get no requests; none where all is well."""
        if not self._looks:
            return None
        names = ", ".join(sorted(self._looks))
        return f"{names}: stuck for more than {self._timeout_s} s (LIMELIGHT_STUCK_TIMEOUT_S)"

    def start(self) -> None:
        """Begin; looks after the running event loop too."""
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    def stop(self) -> None:
        """Look no more."""
        self._stopped.set()

    def limit(self, timeout_s: float) -> None:
        """End the process unless `stop` is called within so long."""
        self._deadline_s = time.monotonic() + timeout_s

    def look(self) -> None:
        """Look once; any thread may."""
        stuck = self._find_stuck(self._timeout_s)
        self._note(stuck)
        self._ask_loop()
        most = self._timeout_s / self._period_s
        for name, looks in self._looks.items():
            if looks > most:
                self._give_up(f"thread {name} has computed for {stuck[name]:.0f} s")
                return
        if self._missed > 2 * most:
            self._give_up(f"the event loop has stood still for {2 * self._timeout_s} s")
        elif self._deadline_s is not None and time.monotonic() > self._deadline_s:
            self._give_up("the threads do not end although the server stops")

    def _run(self) -> None:
        while not self._stopped.wait(self._period_s):
            self.look()

    def _note(self, stuck: Mapping[str, float]) -> None:
        for name in stuck.keys() - self._looks.keys():
            log.error(
                "thread %s is stuck: it has computed for %.1f s, expected at most %s s "
                "(LIMELIGHT_STUCK_TIMEOUT_S); the server is not ready",
                name,
                stuck[name],
                self._timeout_s,
            )
        for name in self._looks.keys() - stuck.keys():
            log.warning("thread %s is no longer stuck", name)
        # One that is put in its place, as others read it meanwhile.
        self._looks = {name: self._looks.get(name, 0) + 1 for name in stuck}

    def _ask_loop(self) -> None:
        if self._loop is None:
            return
        self._missed += 1
        try:
            self._loop.call_soon_threadsafe(self._answer)
        except RuntimeError:  # it is closed, and the process about to end
            self._missed = 0

    def _answer(self) -> None:
        self._missed = 0

    def _give_up(self, reason: str) -> None:
        log.critical("%s: the process ends with exit code %d", reason, EXIT_CODE)
        self._stopped.set()
        self._end()
