"""Starts the workers, replaces those that end, and ends when it is told to."""

import logging
import signal
import socket
import sys
import threading
import time
from itertools import count
from multiprocessing import resource_tracker
from typing import Final, NoReturn

import uvicorn
from uvicorn.supervisors import Multiprocess

from service.errors import StartError
from service.settings import Settings
from service.workers.ledger import Ledger
from service.workers.messages import Ask, FromWorker, Go, Leave, Loaded, Ready, Sum, Tell, Told
from service.workers.share import divide
from service.workers.turns import Seat, Turns
from service.workers.worker import Worker

LOOK_S: Final = 0.05  # while it stops; else uvicorn looks twice a second
# Between two tallies that are asked for unless somebody wants them: what a worker has counted since
# is lost if it is killed. With 256 models, one takes about 0.1 s of each worker.
TELL_PERIOD_S: Final = 5

SIGNALLED: Final = 128  # so says a shell of a process that a signal has ended

# One that comes and one that leaves, while the workers are replaced one after the other.
MORE_PLACES: Final = 2

log = logging.getLogger("limelight")


class Supervisor(Multiprocess):
    """uvicorn's supervisor, for workers that have models to load and counts to add.

    Unlike uvicorn's own, it says when all are ready, ends with the reason of a worker that cannot
    start, ends at once with a second signal, and does not wait for a ping: each worker has a
    watchdog. A worker that lost its supervisor stops.

    Args:
        settings: of the server.
        listeners: shared by all workers.
    """

    processes: list[Worker]  # type: ignore[assignment] # uvicorn's, by a name of its own

    def __init__(self, settings: Settings, listeners: list[socket.socket]) -> None:
        super().__init__(uvicorn.Config("", workers=settings.workers, log_config=None), listeners)
        self._share = divide(settings)
        self._turns = Turns(settings.workers + MORE_PLACES)
        self._numbers = count(1)
        self._questions = count(1)
        self._ledger = Ledger()
        self._starting = threading.Lock()
        self._is_ready = False
        self._failure: str | None = None
        self._due: list[int] = []
        self._successor: Worker | None = None
        self._leaving: list[Worker] = []
        self._told_at_s = time.monotonic()

    def supervise(self) -> None:
        """Serve until told to stop.

        Raises:
            StartError: if a worker cannot start.
            SystemExit: if a worker did not end in order.
        """
        self.run()
        if self._failure is not None:
            raise StartError(self._failure)
        # SIGTERM itself ends a worker that was not so far as to handle it, and had no request.
        for code in (worker.exitcode or 0 for worker in self.processes):
            if code not in (0, -signal.SIGTERM):
                sys.exit(code if code > 0 else SIGNALLED - code)

    def init_processes(self) -> None:
        """Start all workers."""
        # It would unblock the signals that `Worker` blocks, if it came up with the first of them.
        resource_tracker.ensure_running()
        with self._starting:
            for _ in range(self.processes_num):
                self.processes.append(self._start())

    def terminate_all(self) -> None:
        """Let all workers finish what they have."""
        # Held open here, they would take connections that no worker accepts any more.
        for listener in self.sockets:
            listener.close()
        for worker in self._all:
            worker.terminate()

    def join_all(self) -> None:
        """Wait for all workers; a second signal is heard."""
        while not all([worker.has_ended for worker in self._all]):  # noqa: C419 - ask each
            self.handle_signals()
            time.sleep(LOOK_S)

    def keep_subprocess_alive(self) -> None:
        """Replace workers that have ended, and go on with a restart."""
        self._go_on_restarting()
        for index, worker in enumerate(self.processes):
            if worker.has_ended and not self.should_exit.is_set():
                self._replace(index, worker)
        if time.monotonic() > self._told_at_s + TELL_PERIOD_S:
            self._told_at_s = time.monotonic()
            self._question(self._all)

    def restart_all(self) -> None:
        """Replace all workers, one after the other, each when its successor is ready."""
        log.info("all workers are replaced, one after the other (SIGHUP)")
        self._due = list(range(len(self.processes)))

    def handle_term(self) -> None:
        """Stop; with the second signal at once."""
        self._stop(signal.SIGTERM)

    def handle_int(self) -> None:
        """Stop; with the second signal at once."""
        self._stop(signal.SIGINT)

    def handle_ttin(self) -> None:
        """Nothing: the shares of the workers depend on their number."""

    handle_ttou = handle_ttin

    @property
    def _all(self) -> list[Worker]:
        return [*self.processes, *self._leaving, *([self._successor] if self._successor else [])]

    def _start(self) -> Worker:
        number = next(self._numbers)
        taken = {worker.seat.place for worker in self._all}
        place = next(each for each in count() if each not in taken)
        seat = Seat(self._turns, place, is_late=self._is_ready)
        worker = Worker(self.config, self.sockets, self._share, number, seat)
        worker.listen(self._see, self._ledger.bury)
        return worker

    def _replace(self, index: int, worker: Worker) -> None:
        code = worker.exitcode
        if worker.failure is not None or not self._is_ready:
            self._failure = worker.failure or (
                f"a worker ended with exit code {code} before it was ready; the log says why"
            )
            self.should_exit.set()
            return
        log.error("worker %d ended with exit code %s; another takes its place", worker.pid, code)
        self.processes[index] = self._start()

    def _go_on_restarting(self) -> None:
        self._leaving = [worker for worker in self._leaving if not worker.has_ended]
        for worker in self._leaving:
            worker.terminate()
        successor = self._successor
        if successor is None:
            self._successor = self._start() if self._due and not self._leaving else None
        elif successor.is_serving:
            index = self._due.pop(0)
            old, self.processes[index], self._successor = self.processes[index], successor, None
            old.send(Leave())  # and it has until the next look, so that its clients may go
            self._leaving.append(old)
        elif successor.has_ended:
            reason = successor.failure or f"it ended with exit code {successor.exitcode}"
            log.error("the workers are not replaced, as a new one cannot start: %s", reason)
            self._due, self._successor = [], None

    def _stop(self, number: signal.Signals) -> None:
        if self.should_exit.is_set():
            self._end(SIGNALLED + number)
        self.should_exit.set()

    def _end(self, code: int) -> NoReturn:
        for worker in self._all:
            worker.kill()
        sys.exit(code)

    def _see(self, worker: Worker, message: FromWorker) -> None:
        """Take what a worker tells, on the thread of its pipe."""
        match message:
            case Loaded():
                self._welcome(worker)
            case Ready():
                self._show(worker.banner)
            case Told():
                self._ledger.note(worker.number, message)
            case Ask(number):
                # Others must be able to tell, and to ask, meanwhile.
                threading.Thread(target=self._answer, args=(worker, number), daemon=True).start()

    def _welcome(self, worker: Worker) -> None:
        """Let a worker say that it is ready; at the start, all of them when the last one is."""
        with self._starting:
            if self._is_ready:
                worker.send(Go())
            elif all(each.banner for each in self.processes):
                for each in self.processes:
                    each.send(Go())

    def _show(self, banner: str) -> None:
        """Show the first screen, once all workers say that they are ready."""
        with self._starting:
            if not self._is_ready and all(each.is_serving for each in self.processes):
                self._is_ready = True
                print(banner, flush=True)  # noqa: T201 - the banner

    def _answer(self, worker: Worker, number: int) -> None:
        others = [each for each in self._all if each is not worker]
        self._ledger.wait([each.number for each in others], self._question(others))
        worker.send(Sum(self._ledger.add(), number))

    def _question(self, workers: list[Worker]) -> int:
        number = next(self._questions)
        for worker in workers:
            worker.send(Tell(number))
        return number
