"""uvicorn's side of a connection, which knows heads that came before without parsing them."""

import asyncio
from typing import Any, Final, cast

from starlette.types import Scope
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from service.http.company import Company
from service.http.departure import STATE as PRESENCE
from service.http.departure import Presence
from service.http.familiar import Heads, cut_head
from service.http.inlet import STATE as INLET
from service.http.inlet import Inlet, get_inlet
from service.http.outlet import STATE as OUTLET
from service.http.outlet import Outlet
from service.http.prompting import MAX_BYTES, Answerer, Held, Prompting

# What comes later is read by a task of its request, which knows how long that may take. Under load
# a body of 6 MiB takes 0.3 s; one that takes longer than this costs the task once.
READING_PATIENCE_S: Final = 1.0


class Recognizing(Prompting):
    """Holds a request whose head came before, of any size; the parser sees nothing of it.

    Attributes:
        company: of all connections.
        heads: that came before, on any connection.
        head_since_s: when a request began, or the connection, while its headers are not whole.
    """

    company: Company
    heads: Heads
    head_since_s: float | None = None
    _running: RequestResponseCycle | None = None
    _unknown: bytes = b""  # a head that the parser is about to see

    def recognize(self, data: bytes) -> bool:
        """Take a request, or its beginning, if its head came before; says whether it did."""
        answerer = self.answerer
        if answerer is None or not self._is_between():
            return False
        head = self.heads.find(data)
        if head is None:
            self._unknown = cut_head(data)
            return False
        arrived = memoryview(data)[len(head.raw) :]
        # What comes behind it waits for its turn, and that is uvicorn's to see to.
        if len(arrived) > head.size_bytes:
            return False
        own = {"server": self.server, "client": self.client, "state": self.app_state.copy()}
        scope = head.make_scope(own)
        if not answerer.is_for(scope, head.size_bytes):
            return False
        self._hold(answerer, scope, head.size_bytes, arrived)
        return True

    def note_request(self, scope: Scope) -> None:
        """Note that a request begins, and in which company."""
        now_s = self.loop.time()
        self.company.note(self, now_s)
        has_company = self.company.is_there(now_s)
        scope["state"][PRESENCE] = Presence(self.tasks, has_company=has_company)

    def on_headers_complete(self) -> None:
        """The body of a request begins."""
        raw, self._unknown = self._unknown, b""
        super().on_headers_complete()
        if raw and self.answerer is not None and self.cycle.keep_alive:
            self._remember(raw, self.answerer, cast(Scope, self.cycle.scope))

    def _remember(self, raw: bytes, answerer: Answerer, scope: Scope) -> None:
        """Keep the head of a request that is held, or is too large to be held by its body."""
        inlet = get_inlet(scope)
        if inlet is None or (inlet.size_bytes <= MAX_BYTES and self._held is None):
            return
        if self._held is not None or answerer.is_for(scope, inlet.size_bytes):
            self.heads.keep(raw, inlet.size_bytes, scope)

    def on_message_complete(self) -> None:
        """A request has ended."""
        super().on_message_complete()
        self.release_unread()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is closed, by whichever side."""
        running = self._running
        super().connection_lost(exc)
        if running is None:
            return
        if inlet := get_inlet(cast(Scope, running.scope)):
            inlet.leave()
        running.on_response = do_nothing  # it knows this connection: a circle

    def release_unread(self) -> None:
        """Hold a body no longer that comes past the parser, and whose request has its answer."""
        running = self._running
        if running is None or not running.response_complete:
            return
        if inlet := get_inlet(cast(Scope, running.scope)):
            inlet.discard()

    def _is_between(self) -> bool:
        """Whether a request may begin, and be answered at once."""
        line = self.line
        is_open = not line.is_client_sending and not line.is_closing() and not line.is_draining
        return is_open and not self.is_busy() and not self.flow.write_paused

    def is_busy(self) -> bool:
        """Whether a request has no answer yet."""
        return self.cycle is not None and not self.cycle.response_complete

    def _hold(self, answerer: Answerer, scope: Scope, size_bytes: int, arrived: memoryview) -> None:
        self.note_request(scope)
        self.scope = cast(Any, scope)
        cycle = self.cycle = self._running = self._make_cycle(scope)
        self.head_since_s = None
        self._held = held = Held(cycle, self.app, answerer)
        inlet = scope["state"][INLET] = Inlet(self, cycle, size_bytes, is_parsed=False)
        scope["state"][OUTLET] = Outlet(cycle, self.line)
        if len(arrived) == size_bytes:
            cycle.more_body = False
            inlet.take_whole(arrived)
            self._answer(held)
            return
        self.line.is_client_sending = True
        held.patience = self.loop.call_later(READING_PATIENCE_S, self._begin)
        inlet.begin(arrived, answerer.open_account(), answerer.buffers, self._begin)

    def _make_cycle(self, scope: Scope) -> RequestResponseCycle:
        return RequestResponseCycle(
            scope=cast(Any, scope),
            transport=self.transport,
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=self.access_log,
            default_headers=self.server_state.default_headers,
            message_event=asyncio.Event(),
            expect_100_continue=False,
            keep_alive=True,
            on_response=self.on_response_complete,
        )


def do_nothing() -> None:
    """Nobody waits for the answer any more."""
