"""uvicorn's side of a connection, which may answer a request as soon as its body is whole."""

import asyncio
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias, cast

from starlette.types import Scope
from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from service.http.budget import Account
from service.http.buffer_pool import BufferPool
from service.http.departure import get_presence
from service.http.diversion import Diversion
from service.http.inlet import get_inlet
from service.http.outlet import Outlet, get_outlet

# Nobody is waited for longer, and nothing larger: such a body is read as any other. Nor are more
# waited for at once, so that what they hold, 4 MiB, needs no account.
PATIENCE_S: Final = 0.05
MAX_BYTES: Final = 2**18
MAX_WAITING: Final = 16

Outcome: TypeAlias = "bool | asyncio.Future[Any]"
"""Whether a request was answered, or what its answer waits for: whoever cancels that ends it."""


class Answerer(Protocol):
    """Answers some requests without a task for each.

    Attributes:
        waiting: how many requests wait for the rest of their bodies, and hold it on no account.
        buffers: memory for bodies.
    """

    waiting: int
    buffers: BufferPool

    def open_account(self) -> Account:
        """An account for a body."""

    def is_for(self, scope: Scope, size_bytes: int) -> bool:
        """Whether a request may be answered so, by its head and the size of its body."""

    def answer(self, scope: Scope, body: memoryview, outlet: Outlet, *, is_alone: bool) -> Outcome:
        """Answer a request whose body is whole, or begin to."""


class Prompting(Diversion):
    """Begins a request when its body is whole, and only if nobody answers it then.

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
        if self._held is not None:
            self._answer(self._held)

    def _answer(self, held: "Held") -> None:
        """Answer a request whose body is whole, or begin it."""
        is_alone = not self.tasks and not get_presence(cast(Scope, held.cycle.scope)).has_company
        outcome = held.answer(is_alone=is_alone)
        if not outcome:
            self._begin()
            return
        self._held = None
        self.has_answered = True
        # Of one that came through the parser: what computes on it holds it.
        held.cycle.body = bytearray()
        if isinstance(outcome, asyncio.Future):
            self._count(outcome)

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is closed, by whichever side."""
        self._begin()
        super().connection_lost(exc)

    def _count(self, pending: "asyncio.Future[Any]") -> None:
        """Count a request that waits for its answer among those that have tasks."""
        tasks = cast("set[asyncio.Future[Any]]", self.tasks)
        tasks.add(pending)
        pending.add_done_callback(tasks.discard)

    def _may_wait(self, held: "Held") -> bool:
        """Let a request wait for its body, if it may be answered at once then."""
        scope, answerer = cast(Scope, held.cycle.scope), held.answerer
        inlet = get_inlet(scope)
        if inlet is None or inlet.size_bytes > MAX_BYTES:
            return False
        # A client that takes no answers would let them pile up.
        if self.has_answered or self.flow.write_paused:
            return False
        if answerer.waiting >= MAX_WAITING or not answerer.is_for(scope, inlet.size_bytes):
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
        is_counted: whether the answerer counts it, as its body is on no account.
    """

    cycle: RequestResponseCycle
    app: ASGI3Application
    answerer: Answerer
    patience: asyncio.TimerHandle | None = None
    is_counted: bool = False

    def wait(self, patience: asyncio.TimerHandle) -> None:
        """Wait for a body that is on no account."""
        self.patience = patience
        self.answerer.waiting += 1
        self.is_counted = True

    def let_go(self) -> None:
        """Wait no longer."""
        if self.patience is not None:
            self.patience.cancel()
            self.patience = None
        if self.is_counted:
            self.is_counted = False
            self.answerer.waiting -= 1

    def answer(self, *, is_alone: bool) -> Outcome:
        """Answer it at once, or begin to."""
        self.let_go()
        scope = cast(Scope, self.cycle.scope)
        inlet, outlet = get_inlet(scope), get_outlet(scope)
        if inlet is None or outlet is None:
            return False
        body = inlet.body if inlet.is_begun else memoryview(self.cycle.body)
        if body is None:  # there is no room for it yet
            return False
        return self.answerer.answer(scope, body, outlet, is_alone=is_alone)
