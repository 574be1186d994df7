"""What a transport says to another protocol than its connection, passed on to that."""

import asyncio
from typing import Protocol


class Listener(Protocol):
    """Wants to know of all but the bytes."""

    def eof_received(self) -> object:
        """The client sends no more."""

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is closed, by whichever side."""

    def pause_writing(self) -> None:
        """The client takes less than is written."""

    def resume_writing(self) -> None:
        """The client has taken nearly all that was written."""


class Relay(asyncio.BufferedProtocol):
    """Reads in the place of a connection, which hears all else that its transport says meanwhile.

    Args:
        connection: in whose place it reads.
    """

    def __init__(self, connection: Listener) -> None:
        self._listener = connection

    def eof_received(self) -> None:
        """The client sends no more."""
        self._listener.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is closed, by whichever side."""
        self._listener.connection_lost(exc)

    def pause_writing(self) -> None:
        """The client takes less than is written."""
        self._listener.pause_writing()

    def resume_writing(self) -> None:
        """The client has taken nearly all that was written."""
        self._listener.resume_writing()
