"""What a worker does: it serves as a server that is alone, and keeps to its supervisor."""

import signal
import socket
import sys
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import Connection
from typing import cast

from prometheus_client.core import GaugeMetricFamily
from uvicorn.config import STARTUP_FAILURE

from service.app import create_app
from service.banner import render_banner
from service.engine.memory import use_one_arena
from service.errors import StartError
from service.garbage import collect_seldom, keep_what_is_there
from service.logs import configure_logging
from service.serving import make_server
from service.settings import Settings
from service.state import State
from service.tally import Tally
from service.workers.link import Link
from service.workers.messages import (
    Failed,
    FromWorker,
    Go,
    Leave,
    Loaded,
    Order,
    Ready,
    ToWorker,
)
from service.workers.server import WorkerServer
from service.workers.worker import STOPS


def serve(
    settings: Settings,
    listeners: list[socket.socket],
    connection: "Connection[FromWorker, ToWorker]",
    make: Callable[..., WorkerServer],
) -> None:
    """Load, answer, and finish what is in flight when the supervisor says so, or is gone.

    Args:
        settings: of this worker.
        listeners: shared by all workers.
        connection: to the supervisor.
        make: its server.
    """
    use_one_arena()
    collect_seldom()
    configure_logging(settings.log_level, settings.log_format)
    try:
        duty = Duty(settings, listeners, connection, make)
    except StartError as error:
        connection.send(Failed(str(error)))
        sys.exit(STARTUP_FAILURE)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    for stop in STOPS:
        signal.signal(stop, duty.server.handle_exit)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPS)
    duty.server.run(sockets=listeners)
    duty.link.tell()
    if duty.failure is not None:
        duty.link.send(Failed(duty.failure))
        sys.exit(STARTUP_FAILURE)


class Duty:
    """One worker's application, its server, and its end of the pipe; the arguments are as above.

    Attributes:
        server: of the worker, which has not begun.
        link: to the supervisor.
        failure: why the models could not be loaded.

    Raises:
        StartError: if the application cannot be built.
    """

    def __init__(
        self,
        settings: Settings,
        listeners: list[socket.socket],
        connection: "Connection[FromWorker, ToWorker]",
        make: Callable[..., WorkerServer],
    ) -> None:
        self.failure: str | None = None
        (self._host, self._port, *_), *others = (each.getsockname() for each in listeners)
        self._metrics_port = others[0][1] if others else None
        app = create_app(settings, self._accept, self._give_up)
        self._state: State = app.state.service
        # Who asks one worker whether the server is ready asks for all of them. Until they are,
        # those that could serve already do so, but do not say it.
        self._state.hold = "starting"
        self.server = cast("WorkerServer", make_server(app, settings, self._metrics_port, make))
        stop_orphan = partial(self.server.handle_exit, signal.SIGTERM, None)
        self.link = Link(connection, partial(take, self._state), self._obey, stop_orphan)
        self._state.counts.peers = self.link

    def _accept(self, state: State) -> None:
        self.server.accept()
        banner = render_banner(state, self._host, self._port, self._metrics_port)
        self.link.send(Loaded(banner))
        keep_what_is_there()

    def _give_up(self, reason: str) -> None:
        self.failure = reason
        self.server.should_exit = True

    def _obey(self, order: Order) -> None:
        match order:
            case Go():
                self._state.hold = None
                self.link.send(Ready())
            case Leave():
                self.server.leave()


def take(state: State) -> Tally:
    """What a worker has counted, and whether it is ready: the sum says how many are."""
    ready = GaugeMetricFamily("limelight_workers", "Workers that are ready.")
    ready.add_metric([], state.phase == "ready" and state.hold is None)
    counted = state.metrics.take()
    return Tally([*counted.families, ready], counted.readings)
