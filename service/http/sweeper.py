"""The deadlines of connections, enforced for all of them together."""

import asyncio
import logging
from collections.abc import Callable
from http import HTTPStatus
from typing import Final

from uvicorn.server import ServerState

from service.http.bounds import ConnectionBounds
from service.http.connection import Connection, Cut
from service.http.peer import has_hung_up

PERIOD_S: Final = 0.5

log = logging.getLogger("limelight")


class Sweeper:
    """Looks at every connection of a server twice a second.

    Connections note times alone: a timer for each deadline would cost every request more.

    Args:
        state: of the server.
        bounds: of its connections.
        is_stopping: whether the server is closing its connections; those that came too late to be
            told by uvicorn are told here.
        on_cut: called with the name of a bound when a connection is ended because of it.
    """

    def __init__(
        self,
        state: ServerState,
        bounds: ConnectionBounds,
        is_stopping: Callable[[], bool] = lambda: False,
        on_cut: Callable[[Cut], None] = lambda _: None,
    ) -> None:
        self._state = state
        self._bounds = bounds
        self._is_stopping = is_stopping
        self._on_cut = on_cut

    async def run(self, period_s: float = PERIOD_S) -> None:
        """Sweep until cancelled.

        Args:
            period_s: between two sweeps.
        """
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(period_s)
            self.sweep_all(loop.time())

    def sweep_all(self, now_s: float) -> None:
        """Look at every connection once.

        Args:
            now_s: time of the event loop.
        """
        for connection in list(self._state.connections):
            if isinstance(connection, Connection):
                try:
                    self._sweep(connection, now_s)
                except Exception:  # one connection must not end the deadlines of the others
                    log.exception("a connection's deadlines could not be checked")

    def _sweep(self, connection: Connection, now_s: float) -> None:
        bounds, line = self._bounds, connection.line
        if self._is_stopping():
            connection.shutdown()
        if is_over(connection.blocked_since_s, bounds.answer_timeout_s, now_s):
            self._cut_answer(connection)
        elif line.is_closing():
            self._sweep_closing(connection, now_s)
        elif line.is_draining:
            line.sweep(now_s)
        elif connection.is_busy():
            if connection.flow.read_paused and has_hung_up(line.get_extra_info("socket")):
                line.abort()
        elif is_over(connection.head_since_s, bounds.header_timeout_s, now_s):
            self._cut_head(connection)
        elif connection.head_since_s is None and connection.timeout_keep_alive_task is None:
            # Bytes that are no request, such as empty lines, have ended uvicorn's timer.
            connection.become_idle()

    def _sweep_closing(self, connection: Connection, now_s: float) -> None:
        if connection.closing_since_s is None:
            connection.closing_since_s = now_s
        # What is left of an answer may be too little to have stopped the writing.
        if is_over(connection.closing_since_s, self._bounds.answer_timeout_s, now_s):
            self._cut_answer(connection)
        elif connection.line.is_half_closed:
            connection.line.sweep(now_s)

    def _cut_answer(self, connection: Connection) -> None:
        log.warning(
            "a client did not take its answer within %g s (LIMELIGHT_ANSWER_TIMEOUT_S): its "
            "connection is closed",
            self._bounds.answer_timeout_s,
        )
        self._on_cut("answer_timeout_s")
        connection.line.is_closed_here = True
        connection.line.abort()

    def _cut_head(self, connection: Connection) -> None:
        if not connection.line.is_client_sending:  # it has connected, and said nothing
            connection.line.close()
            return
        self._on_cut("header_timeout_s")
        text = (
            "the request line and headers did not come within "
            f"{self._bounds.header_timeout_s:g} s (LIMELIGHT_HEADER_TIMEOUT_S): send them at once"
        )
        connection.refuse(HTTPStatus.REQUEST_TIMEOUT, text)


def is_over(since_s: float | None, timeout_s: float, now_s: float) -> bool:
    """Whether what began at `since_s` has taken too long."""
    return since_s is not None and now_s - since_s > timeout_s
