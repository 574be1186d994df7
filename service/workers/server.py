"""The server of a worker: it takes its share of the connections, when it is time."""

import asyncio
import socket
from functools import partial
from typing import Any

from service.http.server import Server
from service.workers.door import Door
from service.workers.turns import Seat


class WorkerServer(Server):
    """Shares its listening sockets with other processes.

    Args:
        seat: of this worker; it accepts only when it is told to, where it is late.
        *arguments: of `Server`.
        **options: of `Server`.
    """

    def __init__(
        self,
        seat: Seat,
        *arguments: Any,  # noqa: ANN401 - passed on
        **options: Any,  # noqa: ANN401 - passed on
    ) -> None:
        # A terminal sends SIGINT to all processes, and systemd SIGTERM, which the supervisor sends
        # again: only a signal to the supervisor may be the second one.
        super().__init__(*arguments, **(options | {"end": lambda _: None}))
        self._seat = seat
        self._may_accept = not seat.is_late
        self._listeners: list[socket.socket] = []
        self.servers = []

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Be ready to accept, and do so unless it is late."""
        await super().startup([])
        self._loop = asyncio.get_running_loop()
        self._listeners = sockets or []
        if self._may_accept:
            self._open_doors()

    def accept(self) -> None:
        """Take connections from now on, or from the start on, if that is still to come."""
        self._may_accept = True
        if not self.servers:
            self._open_doors()

    def leave(self) -> None:
        """Leave further connections to others, and ask clients to connect anew; from any thread."""
        self._loop.call_soon_threadsafe(self._leave)

    def _leave(self) -> None:
        self._may_accept = False
        self._seat.leave()
        for door in self.servers:
            door.close()
        self._drain()

    def _open_doors(self) -> None:
        self._seat.write(0)
        self.servers.extend(
            Door(  # type: ignore[misc] # uvicorn only closes it
                listener,
                self._make_protocol,
                self._seat.is_next,
                partial(self._count, 1),
            )
            for listener in self._listeners
        )

    async def on_tick(self, counter: int) -> bool:
        """What is to be done ten times a second."""
        if self.servers and self._may_accept:
            self._count(0)
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Leave further connections to others, and close everything."""
        self._leave()
        for door in self.servers:
            await door.wait_closed()  # else uvicorn would not know of the last connections
        await super().shutdown(sockets)

    def _count(self, coming: int) -> None:
        self._seat.write(len(self.server_state.connections) + coming)

    def _make_protocol(self) -> asyncio.Protocol:
        return self.config.http_protocol_class(  # type: ignore[call-arg] # as uvicorn calls it
            config=self.config,
            server_state=self.server_state,
            app_state=self.lifespan.state,
            _loop=asyncio.get_running_loop(),
        )
