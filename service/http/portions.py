"""What came at once, parsed in turns with other connections."""

from collections.abc import Callable
from typing import Any, Final

from service.http.flow import Flow

# One reading brings 256 KB, which may be 43,000 chunks of a byte: parsing them takes 40 ms, and
# those of a portion 0.7 ms.
PORTION_BYTES: Final = 8192
MANY_PARTS: Final = 256


class Portions:
    """Parses what came in portions, and lets others go after one that held many parts of a body.

    Args:
        parse: takes a portion.
        may_wait: whether what is left may be parsed later.
        count_coming: bytes that are to come of a body of known length, 0 where it is not known.
        flow: of the connection, which is not read from meanwhile.
        call_soon: of the event loop.

    Attributes:
        parts: of bodies, in the portion that was parsed last; for the parser to count.
    """

    def __init__(
        self,
        parse: Callable[[memoryview], None],
        may_wait: Callable[[], bool],
        count_coming: Callable[[], int],
        flow: Flow,
        call_soon: Callable[..., Any],
    ) -> None:
        self._parse = parse
        self._may_wait = may_wait
        self._count_coming = count_coming
        self._flow = flow
        self._call_soon = call_soon
        self.parts = 0

    def take(self, data: memoryview) -> None:
        """Parse what came, or what is left of it."""
        while data and not self._flow.is_over():
            self.parts = 0
            # A body of known length is one part, however long.
            size_bytes = max(PORTION_BYTES, self._count_coming())
            self._parse(data[:size_bytes])
            data = data[size_bytes:]
            if data and self.parts >= MANY_PARTS and self._may_wait():
                self._flow.hold()
                self._call_soon(self.take, data)
                return
        self._flow.release()
