"""uvicorn's server, which may serve on for a while after it is told to stop."""

import asyncio
import os
import socket
import time
from collections.abc import Callable
from types import FrameType
from typing import Final

import uvicorn

from service.http.sweeper import Sweeper

# A shell says the same of a process that a signal has ended.
SIGNALLED: Final = 128


class Server(uvicorn.Server):
    """Stops at the first signal in order, and at the second one at once.

    Args:
        config: of uvicorn.
        on_stop: called on the event loop before connections are closed one after the other.
        on_drain: called with the first signal, within its handler; says whether there is anything
            to serve meanwhile.
        drain_delay_ms: between the first signal and `on_stop`, where there is.
        end: ends the process at once.
        sweeper: makes what looks after the connections, given uvicorn's `state` and what tells
            whether the server `is_stopping`.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        on_stop: Callable[[], None],
        on_drain: Callable[[], bool] = lambda: False,
        drain_delay_ms: int = 0,
        end: Callable[[int], object] = os._exit,
        sweeper: Callable[..., Sweeper] | None = None,
    ) -> None:
        super().__init__(config)
        self._on_stop = on_stop
        self._on_drain = on_drain
        self._drain_delay_s = drain_delay_ms / 1000
        self._end = end
        self._sweeper = sweeper
        self._sweeping: asyncio.Task[None] | None = None
        self._stop_at_s: float | None = None
        self._is_draining = False

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - as uvicorn's
        """Note the first signal; end the process with the second.

        Signals are handled between two bytecodes of whatever the thread does, which may hold any
        lock: nothing is logged, closed or flushed here. Nor is the signal noted for uvicorn, which
        would raise it again after its shutdown, for an exit code other than 0.
        """
        if self._stop_at_s is not None:
            self._end(SIGNALLED + sig)
            return
        delay_s = self._drain_delay_s if self._on_drain() else 0
        self._stop_at_s = time.monotonic() + delay_s

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and look after the connections from now on."""
        await super().startup(sockets)
        if self._sweeper is not None:
            sweeper = self._sweeper(state=self.server_state, is_stopping=lambda: self.should_exit)
            self._sweeping = asyncio.create_task(sweeper.run())

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close everything."""
        await super().shutdown(sockets)
        if self._sweeping is not None:
            self._sweeping.cancel()

    async def on_tick(self, counter: int) -> bool:
        """What is to be done ten times a second; says whether to stop."""
        if self._stop_at_s is not None and not self.should_exit:
            self._drain()
            if time.monotonic() >= self._stop_at_s:
                self._on_stop()
                self.should_exit = True
        return await super().on_tick(counter)

    def _drain(self) -> None:
        """Let every further answer ask its client to open another connection, elsewhere."""
        if not self._is_draining:
            self._is_draining = True
            closing = (b"connection", b"close")
            self.config.encoded_headers.append(closing)
            # uvicorn makes these anew once a second, of those above.
            self.server_state.default_headers = [*self.server_state.default_headers, closing]
