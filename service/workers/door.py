"""Where connections come in that several workers may take: each takes those of its turn."""

import asyncio
import socket
from collections.abc import Callable
from typing import Final

# For which a worker that has more connections than another one leaves the next one to it. It then
# takes it all the same: the other one may be busy, stuck or dead.
COURTESY_S: Final = 0.01
# No descriptors are left, say: it goes on when there are some.
FAULT_PAUSE_S: Final = 0.1


class Door:
    """Accepts connections on a listening socket, like the servers of an event loop.

    Those accept whatever they see first. Four clients that come together end at one worker, and
    keep it busy for as long as they stay, beside others that idle.

    Args:
        listener: shared by all workers.
        make_protocol: for a connection.
        is_my_turn: whether no other worker should take the next connection.
        on_connection: called with each that is accepted.
    """

    def __init__(
        self,
        listener: socket.socket,
        make_protocol: Callable[[], asyncio.Protocol],
        is_my_turn: Callable[[], bool],
        on_connection: Callable[[], object],
    ) -> None:
        self._listener = listener
        self._make_protocol = make_protocol
        self._is_my_turn = is_my_turn
        self._on_connection = on_connection
        self._loop = asyncio.get_running_loop()
        self._pause: asyncio.TimerHandle | None = None
        self._openings = set[asyncio.Task[object]]()
        listener.setblocking(False)
        self._watch()

    def close(self) -> None:
        """Accept no more."""
        self._loop.remove_reader(self._listener)
        if self._pause is not None:
            self._pause.cancel()

    async def wait_closed(self) -> None:
        """Wait until the connections that were accepted last have their protocols."""
        if self._openings:
            await asyncio.wait(self._openings)

    def _watch(self) -> None:
        self._loop.add_reader(self._listener, self._see)

    def _see(self) -> None:
        if self._is_my_turn():
            self._accept()
        else:
            self._loop.remove_reader(self._listener)
            self._pause = self._loop.call_later(COURTESY_S, self._go_on)

    def _go_on(self) -> None:
        self._watch()
        self._accept()

    def _accept(self) -> None:
        try:
            accepted, _ = self._listener.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return  # another worker has taken it, or its client has left
        except OSError:
            self._loop.remove_reader(self._listener)
            self._pause = self._loop.call_later(FAULT_PAUSE_S, self._watch)
            return
        accepted.setblocking(False)
        self._on_connection()
        opening = self._loop.create_task(self._open(accepted))
        self._openings.add(opening)  # or nothing would hold it
        opening.add_done_callback(self._openings.discard)

    async def _open(self, accepted: socket.socket) -> None:
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await self._loop.connect_accepted_socket(self._make_protocol, accepted)
