"""uvicorn's side of a connection, past which a body may be read."""

import asyncio
from typing import Final

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from service.http.inlet import STATE, Inlet, get_inlet
from service.http.lingering import LingeringTransport
from service.http.outlet import STATE as OUTLET
from service.http.outlet import Outlet
from service.http.upgrade import make_parser

LAST: Final = b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n"


class Diversion(HttpToolsProtocol):
    """Gives each request whose body's length is known an inlet, and lets it read from the socket.

    Attributes:
        line: the transport.
    """

    line: LingeringTransport
    _is_skipping = False

    def on_headers_complete(self) -> None:
        """The body of a request begins."""
        size_bytes = find_length(self.headers)
        super().on_headers_complete()
        # A client that waits to be told to go on is told by uvicorn, when its body is asked for.
        if size_bytes and not self.expect_100_continue:
            self.scope["state"][STATE] = Inlet(self, self.cycle, size_bytes)
            self.scope["state"][OUTLET] = Outlet(self.cycle, self.line)

    def on_body(self, body: bytes) -> None:
        """A part of a body has come."""
        if not self._is_skipping:
            super().on_body(body)

    def may_wait(self) -> bool:
        """Whether bytes that came may be parsed later: none behind them are read before that."""
        return not self.line.is_client_sending or get_inlet(self.scope) is None

    def count_coming(self) -> int:
        """Bytes that are to come of a body of known length; 0 where it is not known."""
        inlet = get_inlet(self.scope) if self.line.is_client_sending and self.scope else None
        return 0 if inlet is None else inlet.size_bytes - len(self.cycle.body)

    def divert(self, protocol: asyncio.BufferedProtocol) -> None:
        """Let another protocol read from the socket."""
        self._set_protocol(protocol)

    def end_body(self, *, is_parsed: bool = True) -> None:
        """Read again, behind a body that the parser has not seen.

        Args:
            is_parsed: whether it has seen the head.
        """
        self._set_protocol(self)
        if is_parsed:
            is_open = self.parser.should_keep_alive()
            self.parser = make_parser(self) if is_open else make_deaf_parser()
        self.on_message_complete()

    def skip_body(self, data: memoryview) -> None:
        """Read again, behind a part of a body that nobody wants any more."""
        if self.line.is_closing():  # uvicorn takes the parser away
            return
        self._is_skipping = True
        self.parser.feed_data(data)
        self._is_skipping = False
        self._set_protocol(self)

    def skip_unparsed_body(self) -> None:
        """Read again, behind a part of a body whose head the parser has not seen either.

        Nothing tells where the body ends, so that its request is the last one.
        """
        self.cycle.keep_alive = False
        self.parser = make_deaf_parser()
        self._set_protocol(self)

    def _set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        if self.line.is_closing():
            return
        # uvloop asks which kind of protocol it has when reading begins.
        self.line.pause_reading()
        self.line.set_protocol(protocol)
        self.flow.read_paused = False
        self.line.resume_reading()


def find_length(headers: list[tuple[bytes, bytes]]) -> int:
    """The length of a body that comes in one piece; 0 where it is not known."""
    for name, value in headers:
        if name == b"content-length":  # the parser refuses a second one, and what is no number
            return int(value)
    return 0


def make_deaf_parser() -> httptools.HttpRequestParser:
    """A parser that is behind the last request of a connection: it ignores what comes.

    RFC 9112, 9.6: a server that was told "close" must not process any further request.
    """
    parser = make_parser(object())
    parser.feed_data(LAST)
    return parser
