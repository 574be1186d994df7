"""The sockets that a server listens on."""

import os
import socket
from contextlib import ExitStack

from pydantic import IPvAnyAddress

from service.errors import StartError
from service.settings import Settings


def listen_everywhere(settings: Settings) -> list[socket.socket]:
    """The listening socket of the server and, where the settings want one, that of the metrics.

    Raises:
        StartError: if an address cannot be had.
    """
    ports = {"LIMELIGHT_PORT": settings.port, "LIMELIGHT_METRICS_PORT": settings.metrics_port}
    with ExitStack() as opened:
        listeners = [
            opened.enter_context(listen(settings.host, port, name))
            for name, port in ports.items()
            if port is not None
        ]
        opened.pop_all()
    return listeners


def listen(host: IPvAnyAddress, port: int, name: str) -> socket.socket:
    """A listening socket.

    Args:
        host: address to listen on.
        port: to listen on; 0 takes a free one.
        name: of the setting of the port.

    Raises:
        StartError: if the address cannot be had.
    """
    family = socket.AF_INET6 if host.version == 6 else socket.AF_INET
    try:
        return socket.create_server((str(host), port), family=family)
    except OSError as error:
        reason = os.strerror(error.errno or 0)  # the error's own text repeats the address
        raise StartError(
            f"cannot listen on {host} port {port}: {reason}; choose another with LIMELIGHT_HOST "
            f"and {name}"
        ) from None
