"""uvicorn's side of a connection, which may answer a request as soon as its body is whole."""

import asyncio
from dataclasses import dataclass
from typing import Final, Protocol, cast

from starlette.types import Scope
from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from service.http.departure import get_presence
from service.http.diversion import Diversion
from service.http.inlet import get_inlet
from service.http.outlet import Outlet

# Nobody is waited for longer, and nothing larger: such a body is read as any other.
PATIENCE_S: Final = 0.05
MAX_BYTES: Final = 2**18


class Answerer(Protocol):
    """Answers some requests in one call.

    Attributes:
        is_waiting: whether a request waits for the rest of its body; there is one at most, so that
            what it holds needs no account.
    """

    is_waiting: bool

    def is_for(self, scope: Scope) -> bool:
        """Whether a request may be answered so, by its head."""

    def answer(self, scope: Scope, body: memoryview, outlet: Outlet, *, is_alone: bool) -> bool:
        """Answer a request whose body is whole; says whether it did."""


class Prompting(Diversion):
    """Begins a request that is alone when its body is whole, and only if nobody answers it then.

    Attributes:
        answerer: who may; nobody unless given.
        has_answered: whether a request that came with the last bytes was answered so. Those behind
            it wait for their turns of the event loop: 256 KiB may hold a thousand.
    """

    answerer: Answerer | None = None
    has_answered = False
    _held: "Held | None" = None
    _is_in_head = False

    def on_headers_complete(self) -> None:
        """The body of a request begins."""
        self._is_in_head = self.answerer is not None
        super().on_headers_complete()
        self._is_in_head = False
        if self._held is not None and not self._may_wait(self._held):
            self._begin()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        # uvicorn calls this for a request whose turn comes later, too.
        if self._is_in_head and self.answerer is not None:
            self._held = Held(cycle, app, self.answerer)
        else:
            super()._start_asgi_task(cycle, app)

    def on_body(self, body: bytes) -> None:
        """A part of a body has come."""
        if self._held is None:
            super().on_body(body)
        else:
            self._held.cycle.body += body

    def on_message_complete(self) -> None:
        """A request has ended."""
        super().on_message_complete()
        held = self._held
        if held is None:
            return
        if held.answer(Outlet(held.cycle, self.line), is_alone=not self.tasks):
            self._held = None
            self.has_answered = True
            held.cycle.body = bytearray()
        else:
            self._begin()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is closed, by whichever side."""
        self._begin()
        super().connection_lost(exc)

    def _may_wait(self, held: "Held") -> bool:
        """Let a request wait for its body, if it is alone and may be answered at once then."""
        scope, answerer = cast(Scope, held.cycle.scope), held.answerer
        inlet = get_inlet(scope)
        fits = inlet is not None and inlet.size_bytes <= MAX_BYTES
        is_alone = not self.tasks and not get_presence(scope).has_company
        # A client that takes no answers would let them pile up.
        if not fits or not is_alone or self.has_answered or self.flow.write_paused:
            return False
        if answerer.is_waiting or not answerer.is_for(scope):
            return False
        held.wait(self.loop.call_later(PATIENCE_S, self._begin))
        return True

    def _begin(self) -> None:
        """Let a request wait no longer."""
        if self._held is not None:
            held, self._held = self._held, None
            held.let_go()
            super()._start_asgi_task(held.cycle, held.app)


@dataclass(slots=True, eq=False)
class Held:
    """A request that is not begun.

    Attributes:
        cycle: of the request.
        app: that begins it.
        answerer: may answer it.
        patience: ends the wait for its body.
    """

    cycle: RequestResponseCycle
    app: ASGI3Application
    answerer: Answerer
    patience: asyncio.TimerHandle | None = None

    def wait(self, patience: asyncio.TimerHandle) -> None:
        """Wait for the body; one request at a time does."""
        self.patience = patience
        self.answerer.is_waiting = True

    def let_go(self) -> None:
        """Wait no longer."""
        if self.patience is not None:
            self.patience.cancel()
            self.patience = None
            self.answerer.is_waiting = False

    def answer(self, outlet: Outlet, *, is_alone: bool) -> bool:
        """Answer it at once; says whether that was done."""
        self.let_go()
        scope, body = cast(Scope, self.cycle.scope), memoryview(self.cycle.body)
        return self.answerer.answer(scope, body, outlet, is_alone=is_alone)
