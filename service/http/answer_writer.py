"""The head of an answer, written together with its body."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Final

# As uvicorn begins each head; a body that happens to begin so is only written a moment later.
HEAD: Final = b"HTTP/1.1 "


class AnswerWriter:
    """Keeps a head until the body comes, or the event loop has its next turn.

    uvicorn writes them apart: two system calls, and the client wakes up for each.

    Args:
        transport: that is written to.
        call_soon: of the event loop.
    """

    __slots__ = ("_call_soon", "_head", "_transport")

    def __init__(
        self, transport: asyncio.WriteTransport, call_soon: Callable[[Callable[[], None]], object]
    ) -> None:
        self._transport = transport
        self._call_soon = call_soon
        self._head: bytes | None = None

    def write(self, data: bytes) -> None:
        """Write, or keep what is the head of an answer."""
        if self._head is not None:
            head, self._head = self._head, None
            self._transport.writelines((head, data))
        elif data[: len(HEAD)] == HEAD:
            self._head = data
            self._call_soon(self.flush)
        else:
            self._transport.write(data)

    def write_all(self, parts: Iterable[bytes | memoryview]) -> None:
        """Write what is an answer together, after what is kept."""
        self.flush()
        self._transport.writelines(parts)

    def flush(self) -> None:
        """Write what is kept, unless the client has left meanwhile: uvloop would raise."""
        head, self._head = self._head, None
        if head is not None and not self._transport.is_closing():
            self._transport.write(head)
