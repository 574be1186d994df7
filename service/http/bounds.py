"""How long and how much a connection may take."""

from dataclasses import dataclass
from typing import Final

MIB: Final = 2**20


@dataclass(frozen=True, slots=True)
class ConnectionBounds:
    """Bounds of every connection of a server.

    Attributes:
        max_connections: that are served at the same time.
        header_timeout_s: for a request line and its headers to come.
        answer_timeout_s: for an answer to be taken by its client.
        drain_bytes: of a body that are read, and thrown away, after its answer was sent.
        drain_timeout_s: for that to come.
        idle_grace_s: for a request that is on its way when the server stops.
    """

    max_connections: int = 1024
    header_timeout_s: float = 10
    answer_timeout_s: float = 60
    drain_bytes: int = 64 * MIB
    drain_timeout_s: float = 5
    idle_grace_s: float = 0.3
