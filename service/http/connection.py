"""uvicorn's side of a connection, within bounds of bytes and time."""

import asyncio
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Literal, cast

import httptools
from starlette.types import ASGIApp, Scope
from uvicorn.config import Config
from uvicorn.server import ServerState

from service.http.bounds import ConnectionBounds
from service.http.company import Company
from service.http.continuation import close_unless_continued
from service.http.departure import Stage, get_presence
from service.http.familiar import Heads
from service.http.flow import Flow
from service.http.heads import Fault, find_fault
from service.http.lingering import LingeringTransport
from service.http.portions import PORTION_BYTES, Portions
from service.http.prompting import Answerer
from service.http.recognizing import Recognizing
from service.http.refusals import HEAD_TOO_LARGE, MAX_HEAD_BYTES, NOT_HTTP, render_refusal
from service.http.surplus import MAX_SURPLUS, Surplus, render_surplus
from service.http.upgrade import make_parser, render_head

Cut = Literal["max_connections", "header_timeout_s", "answer_timeout_s"]


class Connection(Recognizing):
    """Bounds what a client may send, and notes since when it keeps the server waiting.

    Args:
        config: of uvicorn.
        server_state: of uvicorn.
        app_state: what the lifespan left for requests.
        _loop: event loop; the one that runs unless given.
        bounds: of the connection.
        on_departure: called with the stage of a request whose client leaves before its answer.
        on_cut: called with the name of a bound when the connection is ended because of it.
        answerer: may answer a request as soon as it is whole.
        company: of all connections.
        heads: that came before, of all connections.

    Attributes:
        blocked_since_s: when the client began to take less than is written.
        closing_since_s: when the connection was first seen to be closing; for the sweeper.
    """

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        bounds: ConnectionBounds | None = None,
        on_departure: Callable[[Stage], None] = lambda _: None,
        on_cut: Callable[[Cut], None] = lambda _: None,
        answerer: Answerer | None = None,
        company: Company | None = None,
        heads: Heads | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.blocked_since_s: float | None = None
        self.closing_since_s: float | None = None
        self._bounds = bounds or ConnectionBounds()
        self._on_departure = on_departure
        self._on_cut = on_cut
        self.answerer = answerer
        self.company = company or Company()
        self.heads = Heads() if heads is None else heads
        self._is_stopping = False
        self._is_upgrade_wanted = False
        # httptools collects heads, trailers and a chunk's extensions of any size: 650 MiB once.
        self._bytes_without_progress = 0
        self._fault = Fault(HTTPStatus.BAD_REQUEST, NOT_HTTP)

    # Called by the transport.

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn's
        """A client has connected."""
        self.line = LingeringTransport(transport, self._bounds, self.loop)
        super().connection_made(cast(asyncio.Transport, self.line))
        self.flow = Flow(self.transport, self.pipeline)
        self._portions = Portions(
            self._parse, self.may_wait, self.count_coming, self.flow, self.loop.call_soon
        )
        self.head_since_s = self.loop.time()
        surplus = len(self.connections) - self._bounds.max_connections
        if surplus > 0:
            self.answerer = None
            self.app = cast(Any, self._refuse_requests(cast(Any, self.app)))
        if surplus > MAX_SURPLUS:
            self._refuse_unread()

    def data_received(self, data: bytes) -> None:
        """Bytes have come."""
        if self.line.is_draining:
            self.line.discard(len(data))
            if self.line.is_closing():
                return
        self._unset_keepalive_if_required()
        self.has_answered = False
        if self.recognize(data):
            return
        if len(data) <= PORTION_BYTES:
            self._parse(data)
        else:
            self._portions.take(memoryview(data))

    def pause_writing(self) -> None:
        """The client takes less than is written."""
        self.blocked_since_s = self.loop.time()
        super().pause_writing()

    def resume_writing(self) -> None:
        """The client has taken nearly all that was written."""
        self.blocked_since_s = None
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is closed, by whichever side."""
        stage = None if self.line.is_closed_here else self._find_stage()
        self._abandon()
        super().connection_lost(exc)
        if stage is not None:
            self._on_departure(stage)

    # Called by the parser.

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        # Armed again by the end of a refused request that came with this one.
        self._unset_keepalive_if_required()
        self.head_since_s = self.loop.time()
        self.note_request(cast(Scope, self.scope))
        self.line.is_client_sending = True

    def on_headers_complete(self) -> None:
        """The body of a request begins.

        Raises:
            httptools.HttpParserError: if it cannot be taken.
        """
        self._bytes_without_progress = 0
        self.head_since_s = None
        if self.parser.should_upgrade():
            self._is_upgrade_wanted = True
            return
        fault = find_fault(self.parser.get_http_version(), self.headers, len(self.pipeline))
        if fault:
            self._fault = fault
            raise httptools.HttpParserError(fault.text)
        super().on_headers_complete()
        # To httptools trailers are headers: they would join those that a proxy has checked, which
        # RFC 9110, 6.5.1, forbids.
        self.headers = []
        if not self.pipeline:
            self._running = self.cycle
        if self._is_stopping:
            self.cycle.keep_alive = False
        if self.expect_100_continue:
            close_unless_continued(self.cycle, lambda: not self._is_stopping)

    def on_body(self, body: bytes) -> None:
        """A part of a body has come."""
        self._bytes_without_progress = 0
        self._portions.parts += 1
        super().on_body(body)

    def on_message_complete(self) -> None:
        """A request has ended."""
        if self._is_upgrade_wanted:
            return
        self._bytes_without_progress = 0
        self.line.is_client_sending = False
        super().on_message_complete()
        if self.flow.read_paused:  # by a large last part: no departure would be noticed
            self.flow.resume_reading()
        if self.line.is_draining:
            self.line.stop_draining()
            self.become_idle()

    # Called by uvicorn.

    def on_response_complete(self) -> None:
        """A request has its answer, perhaps before its end."""
        self.release_unread()
        if self.pipeline:
            self._running = self.pipeline[-1][0]
        super().on_response_complete()
        if (self.line.is_client_sending or self._is_stopping) and not self.line.is_closing():
            self._end_exchange()

    def _end_exchange(self) -> None:
        if self.is_busy():
            return
        if self.line.is_client_sending:
            self._unset_keepalive_if_required()
            self.line.drain()
        elif self._is_stopping:
            self._close_after_grace()

    def shutdown(self) -> None:
        """End the connection once its requests are answered and none is on its way."""
        if self._is_stopping:
            return
        self._is_stopping = True
        if not self.is_busy():
            self._close_after_grace()
        elif not self.cycle.response_started:  # else the client was told to go on
            self.cycle.keep_alive = False

    # Called by the sweeper.

    def become_idle(self) -> None:
        """Wait for the next request, as after any answer."""
        if self._is_stopping:
            self._close_after_grace()
            return
        self._unset_keepalive_if_required()
        self.timeout_keep_alive_task = self.loop.call_later(
            self.timeout_keep_alive, self.timeout_keep_alive_handler
        )

    def refuse(self, status: HTTPStatus, text: str) -> None:
        """Say what is wrong, and close the connection."""
        if self.line.is_closing():
            return
        is_answering = self.is_busy() and self._running and self._running.response_started
        self._abandon()
        if is_answering:  # nothing can be said in the midst of it
            self.line.abort()
        else:
            self.line.write(render_refusal(status, text))
            self.line.linger()

    def _parse(self, data: bytes | memoryview) -> None:
        self._bytes_without_progress += len(data)
        try:
            self._feed(data)
        except httptools.HttpParserError:
            self.refuse(*self._fault)
            return
        if self._bytes_without_progress > MAX_HEAD_BYTES:
            self.refuse(HTTPStatus.BAD_REQUEST, HEAD_TOO_LARGE)

    def _feed(self, data: bytes | memoryview) -> None:
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._is_upgrade_wanted = False
            parser, self.parser = self.parser, make_parser(self)
            self.parser.feed_data(render_head(parser, self.url, self.headers))
            self._feed(data[upgrade.args[0] :])

    def _close_after_grace(self) -> None:
        self.loop.call_later(self._bounds.idle_grace_s, self._close_if_idle)

    def _close_if_idle(self) -> None:
        # A request that has begun to come is answered; its head has a deadline of its own.
        is_in_head = self.head_since_s is not None and self.line.is_client_sending
        if not self.is_busy() and not is_in_head:
            self.line.close()

    def _find_stage(self) -> Stage | None:
        """What is done for the client; None where it has all that it asked for."""
        running = self._running
        if running is not None and not running.response_complete:
            if running.response_started:
                return "answer"
            return "body" if running.more_body else get_presence(running.scope).stage
        # After an error of the writing libuv has forgotten what was left to write.
        if self.blocked_since_s is not None or self.line.get_write_buffer_size():
            return "answer"
        return "head" if self.line.is_client_sending and not self.line.is_draining else None

    def _abandon(self) -> None:
        """Give up the requests that have no answer: none can be written any more."""
        for cycle in (self._running, *(cycle for cycle, _ in self.pipeline)):
            if cycle is not None and not cycle.response_complete:
                cycle.disconnected = True
                cycle.message_event.set()
                get_presence(cycle.scope).leave()
        self.pipeline.clear()

    def _refuse_requests(self, app: ASGIApp) -> Surplus:
        return Surplus(app, self._bounds.max_connections, lambda: self._on_cut("max_connections"))

    def _refuse_unread(self) -> None:
        """Refuse the connection before it has sent anything: too many wait for their refusal."""
        self._on_cut("max_connections")
        self.line.write(render_surplus(self._bounds.max_connections))
        self.line.drain()
        self.line.close()
