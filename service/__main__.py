"""The command ``limelight-serve``."""

import importlib.metadata
import os
import signal
import socket
import sys

import uvicorn

from service.app import create_app
from service.banner import render_banner
from service.connection import Connection
from service.errors import StartError
from service.logs import configure_logging
from service.server import Server
from service.settings import Settings, SettingsError
from service.state import State


def main() -> None:
    """Serve until told to stop; exit with 1 and one line where that is not possible."""
    arguments = sys.argv[1:]
    if arguments == ["--version"]:
        print(importlib.metadata.version("limelight"))  # noqa: T201 - what was asked for
        return
    try:
        serve(Settings.load(arguments))
    except (SettingsError, StartError) as error:
        sys.exit(f"limelight-serve: {error}")


def serve(settings: Settings) -> None:
    """Listen, load, answer, and finish what is in flight when the process is told to stop.

    Raises:
        StartError: if the address is taken or the models cannot be loaded.
    """
    configure_logging(settings.log_level)
    listener = listen(settings)
    failures: list[str] = []

    def on_ready(state: State) -> None:
        address = listener.getsockname()
        print(render_banner(state, address[0], address[1]), flush=True)  # noqa: T201 - the banner

    def on_failure(reason: str) -> None:
        failures.append(reason)
        server.should_exit = True

    app = create_app(settings, on_ready, on_failure)
    server = Server(
        uvicorn.Config(
            app,
            loop="uvloop",
            http=Connection,
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=settings.shutdown_timeout_s,
        ),
        on_stop=app.state.service.stop,
    )
    # uvicorn raises the signal again after its shutdown: with the default handler behind it the
    # exit code would be 143. With its own, a signal that comes before it listens counts too.
    for stop in (signal.SIGTERM, signal.SIGINT):
        signal.signal(stop, server.handle_exit)
    server.run(sockets=[listener])
    if failures:
        raise StartError(failures[0])


def listen(settings: Settings) -> socket.socket:
    """A listening socket.

    Raises:
        StartError: if the address cannot be had.
    """
    family = socket.AF_INET6 if settings.host.version == 6 else socket.AF_INET
    try:
        return socket.create_server((str(settings.host), settings.port), family=family)
    except OSError as error:
        reason = os.strerror(error.errno or 0)  # the error's own text repeats the address
        raise StartError(
            f"cannot listen on {settings.host} port {settings.port}: {reason}; choose another "
            "with LIMELIGHT_HOST and LIMELIGHT_PORT"
        ) from None


if __name__ == "__main__":
    main()
