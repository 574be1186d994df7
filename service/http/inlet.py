"""The body of one request, from the socket into one buffer.

Through uvicorn a body is copied four times: from the socket, by the parser, into what waits for the
application, and for the application. A body whose length is known needs one copy.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, cast

from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from service.http.body import too_slow
from service.http.budget import Account
from service.http.buffer_pool import BufferPool
from service.http.relay import Relay

if TYPE_CHECKING:
    from service.http.diversion import Diversion

SCRATCH_BYTES: Final = 65536  # where what nobody wants is read to
STATE: Final = "inlet"  # where a request's scope holds it


class Inlet(Relay):
    """Reads a body whose length is known; meanwhile it is the protocol of the transport.

    Args:
        connection: that the body comes over.
        cycle: of the request; holds what came before the body was asked for.
        size_bytes: of the body.
        is_parsed: whether the parser has seen the head, and expects the body.

    Attributes:
        size_bytes: of the body, as its client announced it.
        received_bytes: how many have come since it was asked for, those before among them.
        account: of its own, on which a body is held that was begun before anybody asked for it.
    """

    def __init__(
        self,
        connection: "Diversion",
        cycle: RequestResponseCycle,
        size_bytes: int,
        *,
        is_parsed: bool = True,
    ) -> None:
        super().__init__(connection)
        self._connection = connection
        self._cycle: RequestResponseCycle | None = cycle
        self._is_parsed = is_parsed
        self.size_bytes = size_bytes
        self.received_bytes = 0
        self.account: Account | None = None
        self._buffer: memoryview | None = None
        self._parsed_bytes = 0
        self._owed_bytes = 0
        self._waited_s = 0.0
        self._woken: asyncio.Future[None] | None = None
        self._on_shortage: Callable[[], None] | None = None
        self._account: Account | None = None
        self._is_open = False
        self._is_wanted = True

    def begin(
        self,
        arrived: memoryview,
        account: Account,
        buffers: BufferPool,
        on_shortage: Callable[[], None],
    ) -> None:
        """Read the body although nobody has asked for it, for whoever will.

        Args:
            arrived: what has come of it.
            account: on which the body is held meanwhile.
            buffers: lend memory for the body.
            on_shortage: called when there is no room for what came.
        """
        self.account, self._on_shortage = account, on_shortage
        self._waited_s = -self._connection.loop.time()  # until somebody asks for it
        self._receive(arrived, account, buffers)
        self._open()
        if self._owed_bytes:
            on_shortage()

    def take_whole(self, body: memoryview) -> None:
        """Take a body that has come with its head, as it is."""
        self._buffer = body
        self.received_bytes = len(body)

    def hold(self, account: Account) -> None:
        """Hold the body on an account of its own, until `release`."""
        self.account = self._account = account

    def seal(self) -> None:
        """Say that the request will give back by itself what its body takes."""
        if self.account is not None:
            self.account.seal()

    def release(self) -> None:
        """Hold the body no longer."""
        self._buffer = self._on_shortage = None
        self.give_back()

    def discard(self) -> None:
        """Read on to the end of the body for the connection's sake: its request has its answer."""
        self.release()
        self._is_wanted = False
        # Its scope holds this: a circle.
        self._cycle = None
        if self._is_open:
            self._buffer = memoryview(bytearray(min(self.size_bytes, SCRATCH_BYTES)))
            self._connection.flow.resume_reading()

    def leave(self) -> None:
        """Read nothing more, as the connection is lost; it may have been before the first byte."""
        self._is_open = False
        self.release()

    def give_back(self) -> None:
        """Let the account go on which the body is held."""
        if self.account is not None:
            self.account.close()
            self.account = None

    @property
    def is_begun(self) -> bool:
        """Whether what comes, or has come, is read past the parser."""
        return self._buffer is not None

    @property
    def body(self) -> memoryview | None:
        """The body, if it came past the parser, is whole, and there was room for all of it."""
        is_here = self.received_bytes == self.size_bytes and not self._owed_bytes
        return self._buffer if is_here else None

    async def read(
        self, account: Account, timeout_s: float | None, buffers: BufferPool
    ) -> memoryview:
        """Read the whole body.

        Args:
            account: on which the body is held; where it has no room nothing more is read meanwhile.
            timeout_s: for which the client is waited for, in all.
            buffers: lend memory for the body.

        Raises:
            UnavailableError: if the account gets no room in time.
            RequestTimeoutError: if the body does not come within `timeout_s`.
        """
        if self._buffer is not None:
            self._take_over(account)
        elif self._asked.more_body:
            arrived, self._asked.body = self._asked.body, bytearray()
            self._parsed_bytes = len(arrived)
            self._receive(arrived, account, buffers)
            self._open()
        else:
            return await self._read_arrived(account)
        try:
            await self._fill(timeout_s)
            self._held_on.seal()
            return self._view
        finally:
            self._close()
            # The connection keeps its last request, and that this inlet: nobody counts its bytes.
            self._buffer = None

    async def _read_arrived(self, account: Account) -> memoryview:
        """A body that was whole before it was asked for."""
        arrived, self._asked.body = self._asked.body, bytearray()
        self.received_bytes = len(arrived)
        await account.grow(len(arrived))
        account.seal()
        return memoryview(arrived)

    def _receive(
        self, arrived: bytearray | memoryview, account: Account, buffers: BufferPool
    ) -> None:
        """Take memory for the body, with what has come of it."""
        self._account = account
        self._buffer = buffers.take(self.size_bytes)
        self._buffer[: len(arrived)] = arrived
        self.received_bytes = len(arrived)
        if not account.try_grow(len(arrived)):
            self._owed_bytes = len(arrived)

    def _take_over(self, account: Account) -> None:
        """Let whoever asks for a body that was begun wait for the rest, and for room.

        What is held on an account of the body's own stays there: given back and asked for again, it
        would lose its place, and others would take the room meanwhile.
        """
        if self._on_shortage is not None:
            self._on_shortage = None
            self._waited_s += self._connection.loop.time()
        if self.account is None:
            self._account = account
            self._owed_bytes = 0 if account.try_grow(self.received_bytes) else self.received_bytes

    async def _fill(self, timeout_s: float | None) -> None:
        flow = self._connection.flow
        while self._owed_bytes or self._is_open:
            if self._owed_bytes:
                flow.pause_reading()
                owed_bytes, self._owed_bytes = self._owed_bytes, 0
                await self._held_on.grow(owed_bytes)
                flow.resume_reading()
            else:
                await self._wait(timeout_s)

    async def _wait(self, timeout_s: float | None) -> None:
        """Wait until the body is whole, or there is no room for what came."""
        loop = self._connection.loop
        began_s = loop.time()
        self._woken = loop.create_future()
        # Not `asyncio.timeout`, which costs five times as much.
        left_s = None if timeout_s is None else max(0.0, timeout_s - self._waited_s)
        timer = None if left_s is None else loop.call_later(left_s, self._give_up, timeout_s)
        try:
            await self._woken
        finally:
            if timer is not None:
                timer.cancel()
        self._waited_s += loop.time() - began_s

    def _give_up(self, timeout_s: float | None) -> None:
        if self._woken is not None and not self._woken.done():
            self._woken.set_exception(too_slow(self.received_bytes, timeout_s))

    def _open(self) -> None:
        self._is_open = True
        self._connection.divert(self)

    def _close(self) -> None:
        if not self._is_open:
            return
        self._is_open = False
        if self.received_bytes == self.size_bytes:
            self._connection.end_body(is_parsed=self._is_parsed)
        elif self._is_parsed:
            self._connection.skip_body(self._view[self._parsed_bytes : self.received_bytes])
        else:
            self._connection.skip_unparsed_body()

    @property
    def _asked(self) -> RequestResponseCycle:
        return cast(RequestResponseCycle, self._cycle)

    @property
    def _held_on(self) -> Account:
        return cast(Account, self._account)

    @property
    def _view(self) -> memoryview:
        return cast(memoryview, self._buffer)

    # Called by the transport.

    def get_buffer(self, _: int) -> memoryview:
        """Where the next bytes go; never beyond the body."""
        if self._is_wanted:
            return self._view[self.received_bytes :]
        return self._view[: self.size_bytes - self.received_bytes]

    def buffer_updated(self, nbytes: int) -> None:
        """Bytes have come."""
        self.received_bytes += nbytes
        has_room = not self._is_wanted or self._held_on.try_grow(nbytes)
        if not has_room:
            self._owed_bytes += nbytes
        if self.received_bytes == self.size_bytes:
            self._close()
        elif has_room:
            return
        if not has_room:
            self._connection.flow.pause_reading()
            if self._on_shortage is not None:
                self._on_shortage()
        if self._woken is not None and not self._woken.done():
            self._woken.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is closed, by whichever side."""
        self._is_open = False
        super().connection_lost(exc)


def get_inlet(scope: Mapping[str, Any]) -> Inlet | None:
    """The inlet of a request, where its connection gave it one.

    Args:
        scope: ASGI's, of the request.
    """
    inlet = scope.get("state", {}).get(STATE)
    return inlet if isinstance(inlet, Inlet) else None
