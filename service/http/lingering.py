"""A transport that is not closed on a client that is still sending."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Final

from service.http.answer_writer import AnswerWriter
from service.http.bounds import ConnectionBounds

# A client needs a moment to read its answer before the rest of its request is refused by a reset.
MOMENT_S: Final = 1.0


class LingeringTransport:
    """The transport of a connection; its `close` lets the client read the answer first.

    Closing a socket on bytes that were not read makes TCP send a reset, and a reset may destroy
    an answer that the client has not read yet (RFC 9112, 9.6). So the rest of the request is read
    and thrown away, within bounds, after the writing side has been closed.

    Attributes:
        write: of the transport; does nothing once the writing side is closed.
        write_all: the same of several parts.
        is_closing: whether no answer can be written any more.
        is_client_sending: whether more of a request is to come; for the connection to say.
        is_draining: whether what comes is thrown away, as its request has its answer.
        is_half_closed: whether no answer can be written any more, but bytes are read.
        is_closed_here: whether it was closed by the server.
    """

    __slots__ = (
        "_clock",
        "_drain_bytes",
        "_drain_timeout_s",
        "_left_bytes",
        "_transport",
        "_until_s",
        "_writer",
        "abort",
        "get_extra_info",
        "get_write_buffer_size",
        "is_client_sending",
        "is_closed_here",
        "is_closing",
        "is_draining",
        "is_half_closed",
        "pause_reading",
        "resume_reading",
        "set_protocol",
        "write",
        "write_all",
    )

    def __init__(
        self,
        transport: asyncio.Transport,
        bounds: ConnectionBounds,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        # Bound methods, not methods that pass on: every answer would pay for a call more.
        self._writer = AnswerWriter(transport, loop.call_soon)
        self.write: Callable[[bytes], None] = self._writer.write
        self.write_all: Callable[[Iterable[bytes | memoryview]], None] = self._writer.write_all
        self.is_closing: Callable[[], bool] = transport.is_closing
        self.abort = transport.abort
        self.get_extra_info = transport.get_extra_info
        self.get_write_buffer_size = transport.get_write_buffer_size
        self.pause_reading = transport.pause_reading
        self.resume_reading = transport.resume_reading
        self.set_protocol = transport.set_protocol
        self._transport = transport
        self._drain_bytes = bounds.drain_bytes
        self._drain_timeout_s = bounds.drain_timeout_s
        self._clock = loop.time
        self._left_bytes = 0
        self._until_s = 0.0
        self.is_client_sending = False
        self.is_draining = False
        self.is_half_closed = False
        self.is_closed_here = False

    def close(self) -> None:
        """Close: at once, or once the client had the time to read what was written."""
        if self.is_client_sending:
            self.linger()
        elif not self.is_half_closed:
            self._close()

    def linger(self) -> None:
        """Close the writing side; read on for a while."""
        self.is_closed_here = True
        if self.is_closing():
            return
        self.is_half_closed = True
        self.write, self.write_all, self.is_closing = ignore, ignore, always
        self._writer.flush()
        self._transport.write_eof()
        self._transport.resume_reading()
        if not self.is_draining:
            self.drain()

    def drain(self) -> None:
        """From here on throw away what comes."""
        self.is_draining = True
        self._left_bytes = self._drain_bytes
        self._until_s = self._clock() + self._drain_timeout_s

    def stop_draining(self) -> None:
        """The request ended within the bounds: its connection is as good as any."""
        self.is_draining = False

    def discard(self, size_bytes: int) -> None:
        """Note that bytes came that are thrown away."""
        self._left_bytes -= size_bytes
        if self._left_bytes < 0:
            self._give_up()

    def sweep(self, now_s: float) -> None:
        """Close a connection that was read from for long enough."""
        if now_s < self._until_s:
            return
        if not self.is_half_closed:
            self._give_up()
        elif self.get_write_buffer_size():  # the client has not even been sent its answer
            self._until_s = now_s + MOMENT_S
        else:
            self._close()

    def _give_up(self) -> None:
        """Read no more, and leave the client a moment."""
        self.linger()
        self.pause_reading()
        self._until_s = min(self._until_s, self._clock()) + MOMENT_S

    def _close(self) -> None:
        self.is_closed_here = True
        self._writer.flush()
        self._transport.close()


def ignore(_: object) -> None:
    """Write nothing: the writing side is closed."""


def always() -> bool:
    """The writing side stays closed."""
    return True
