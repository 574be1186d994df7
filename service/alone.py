"""A server of one process."""

import signal
import socket

from service.app import create_app
from service.banner import render_banner
from service.errors import StartError
from service.garbage import keep_what_is_there
from service.serving import make_server
from service.settings import Settings
from service.state import State


def serve(settings: Settings, listeners: list[socket.socket]) -> None:
    """Load, answer, and finish what is in flight when the process is told to stop.

    Args:
        settings: of the process.
        listeners: of the server and, where there are two, of the metrics.

    Raises:
        StartError: if the models cannot be loaded.
    """
    addresses = [listener.getsockname() for listener in listeners]
    failures: list[str] = []

    def on_ready(state: State) -> None:
        metrics_port = addresses[1][1] if len(addresses) > 1 else None
        host, port = addresses[0][:2]
        banner = render_banner(state, host, port, metrics_port)
        print(banner, flush=True)  # noqa: T201 - the banner
        keep_what_is_there()

    def on_failure(reason: str) -> None:
        failures.append(reason)
        server.should_exit = True

    app = create_app(settings, on_ready, on_failure)
    server = make_server(app, settings, addresses[1][1] if len(addresses) > 1 else None)
    # A signal that comes before uvicorn listens counts too; the server does not let uvicorn raise
    # it again, so the exit code is 0.
    for stop in (signal.SIGTERM, signal.SIGINT):
        signal.signal(stop, server.handle_exit)
    server.run(sockets=listeners)
    if failures:
        raise StartError(failures[0])
