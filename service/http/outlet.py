"""A whole answer, from one call to the transport.

uvicorn's `send` looks at each header for what must not be in one, twice, and is awaited for the
head and for the body; a body of several parts would be joined first, or written by as many system
calls. What is answered here has headers of our own making.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

if TYPE_CHECKING:
    from service.http.lingering import LingeringTransport

STATE: Final = "outlet"  # where a request's scope holds it
CLOSING: Final = (b"connection", b"close")

Headers = Iterable[tuple[bytes, bytes]]
Parts = Sequence[bytes | memoryview]


class Outlet:
    """Answers one request as uvicorn's `send` would.

    Args:
        cycle: of the request.
        line: the transport.
    """

    __slots__ = ("_cycle", "_line")

    def __init__(self, cycle: RequestResponseCycle, line: "LingeringTransport") -> None:
        self._cycle = cycle
        self._line = line

    def has_room(self) -> bool:
        """Whether the client has taken nearly all that was written to it before."""
        return not self._cycle.flow.write_paused

    def abort(self) -> None:
        """End the connection at once, as its answer could not be made."""
        self._line.abort()

    def close_after(self) -> None:
        """Let the answer be the last one of its connection."""
        self._cycle.keep_alive = False

    def answer(self, status: int, headers: Headers, body: Parts) -> None:
        """Write an answer that is small enough for the transport to keep.

        Args:
            status: of the answer.
            headers: of the answer, its length among them; names in lower case, and nothing in
                them that came from a client unseen.
            body: of the answer, in parts.
        """
        if not self._cycle.disconnected:
            self._write(status, headers, body)
            self._complete()

    async def answer_large(self, status: int, headers: Headers, body: Parts) -> None:
        """Write an answer, and wait until the transport has room again."""
        if not self.begin(status, headers, body):
            await self.end()

    def begin(self, status: int, headers: Headers, body: Parts) -> bool:
        """Write an answer; says whether that was all, or its `end` has to be waited for."""
        if self._cycle.disconnected:
            return True
        self._write(status, headers, body)
        if not self.has_room():
            return False
        self._complete()
        return True

    async def end(self) -> None:
        """Wait until the transport has room again."""
        cycle = self._cycle
        if cycle.flow.write_paused and not cycle.disconnected:
            await cycle.flow.drain()
        if not cycle.disconnected:
            self._complete()

    def _write(self, status: int, headers: Headers, body: Parts) -> None:
        cycle = self._cycle
        cycle.response_started = True
        head = [STATUS_LINE[status]]
        for name, value in (*cycle.default_headers, *headers):
            head += (name, b": ", value, b"\r\n")
        if CLOSING in cycle.default_headers:
            cycle.keep_alive = False
        elif not cycle.keep_alive:
            head.append(b"connection: close\r\n")
        head.append(b"\r\n")
        self._line.write_all((b"".join(head), *body))

    def _complete(self) -> None:
        cycle = self._cycle
        cycle.response_complete = True
        cycle.message_event.set()
        if not cycle.keep_alive:
            cycle.transport.close()
        # Its scope holds this: a circle.
        del self._cycle
        cycle.on_response()


def get_outlet(scope: Mapping[str, Any]) -> Outlet | None:
    """The outlet of a request, where its connection gave it one.

    Args:
        scope: ASGI's, of the request.
    """
    outlet = scope["state"].get(STATE)
    return outlet if isinstance(outlet, Outlet) else None
