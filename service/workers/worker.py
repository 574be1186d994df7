"""One worker: a process that serves, as its supervisor sees it."""

import os
import signal
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final

import uvicorn
from uvicorn.supervisors.multiprocess import Process

from service.settings import Settings
from service.workers.messages import Failed, FromWorker, Loaded, Ready, ToWorker
from service.workers.turns import Seat

# Held back while a worker comes up: what is sent to it meanwhile counts as soon as it can stop.
STOPS: Final = (signal.SIGTERM, signal.SIGINT)
JOIN_TIMEOUT_S: Final = 5


class Worker(Process):
    """uvicorn's process of a worker, with what runs in it, and a pipe that says more than a pong.

    Args:
        config: of uvicorn's supervisor.
        sockets: to listen on.
        settings: of this worker.
        number: of this worker among all that were started.
        seat: of this worker.

    Attributes:
        number: of this worker.
        seat: of this worker.
        banner: the first screen that it would show; empty until its models are loaded.
        is_serving: whether it says that it is ready.
        failure: why it cannot start.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        sockets: list[socket.socket],
        settings: Settings,
        number: int,
        seat: Seat,
    ) -> None:
        self._settings = settings
        self.number = number
        self.seat = seat
        self.banner = ""
        self.is_serving = False
        self.failure: str | None = None
        super().__init__(config, sockets)

    def target(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve; runs in the process of the worker."""
        # Imported there alone: the supervisor needs neither the engine nor the routes.
        from service.workers.duty import serve
        from service.workers.server import WorkerServer

        self.parent_conn.close()  # a copy, which would hide that the supervisor is gone
        make = partial(WorkerServer, self.seat)
        serve(self._settings, sockets or [], self.child_conn, make)

    def listen(
        self, see: Callable[["Worker", FromWorker], None], on_end: Callable[[int], None]
    ) -> None:
        """Start the process, and pass on what it tells, on a thread of its own.

        Args:
            see: called with each message.
            on_end: called with the number of the worker after the last one.
        """
        signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)
        try:
            self.start()
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPS)
        self.child_conn.close()  # or the end of the worker would not be the end of the pipe
        self._sending = threading.Lock()
        self._reader = threading.Thread(target=self._read, args=(see, on_end), daemon=True)
        self._reader.start()

    @property
    def has_ended(self) -> bool:
        """Whether the process has ended, and all that it told was passed on."""
        if self.process.is_alive():
            return False
        self._reader.join(JOIN_TIMEOUT_S)
        return True

    def send(self, message: ToWorker) -> None:
        """Tell the worker something, if it is there."""
        with self._sending, suppress(OSError):
            self.parent_conn.send(message)

    def terminate(self) -> None:
        """Let the worker finish what it has; its pipe stays, for what it counts meanwhile."""
        if self.pid is not None and self.exitcode is None:
            os.kill(self.pid, signal.SIGTERM)

    def kill(self) -> None:
        """End the worker at once."""
        self.process.kill()

    def _read(
        self, see: Callable[["Worker", FromWorker], None], on_end: Callable[[int], None]
    ) -> None:
        with suppress(EOFError, OSError), self.parent_conn as connection:
            while True:
                message = connection.recv()
                if isinstance(message, Loaded):
                    self.banner = message.banner
                elif isinstance(message, Ready):
                    self.is_serving = True
                elif isinstance(message, Failed):
                    self.failure = message.reason
                see(self, message)
        self.seat.leave()
        on_end(self.number)
