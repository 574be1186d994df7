"""Clients that leave before their answer, as Serve tells of them."""

import asyncio
from collections.abc import Callable
from types import TracebackType

from starlette.types import ASGIApp, Receive, Scope, Send

from service.http.departure import STATE, Presence, Stage


class Departures:
    """Gives every request a presence that knows how Serve says that nobody waits any more.

    Args:
        app: that answers.
        on_departure: called with the stage of a request whose client left.
    """

    def __init__(self, app: ASGIApp, on_departure: Callable[[Stage], None]) -> None:
        self._app = app
        self._on_departure = on_departure

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] == "http":
            scope.setdefault("state", {})[STATE] = CancelledPresence(self._on_departure)
        await self._app(scope, receive, send)


class CancelledPresence(Presence):
    """The presence of a client whose request is cancelled when it leaves.

    Serve cancels the task of a request where its client leaves, where its proxy gives it up, and
    where a replica has had its time to stop: in no case an answer reaches anybody.
    """

    def __init__(self, on_departure: Callable[[Stage], None]) -> None:
        super().__init__()
        self._on_departure = on_departure

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """A cancellation is the client's departure.

        Raises:
            ClientLeftError: if the client left meanwhile.
        """
        if kind is asyncio.CancelledError:
            self.has_left = True
            self._on_departure(self.stage)
        super().__exit__(kind, error, traceback)
