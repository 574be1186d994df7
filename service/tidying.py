"""Memory given back while there is nothing to do."""

import asyncio
from collections.abc import Callable
from typing import Final

from service.http.holdings import Holdings

PERIOD_S: Final = 1.0


class Tidying:
    """Gives the memory of requests back to the system once none has come for a while.

    The C library and onnxruntime keep what is freed for the next request. That is faster, and after
    a burst of large bodies or long sequences it is more than all else together.

    Args:
        holdings: tell whether requests came, and whether any is still there.
        free: gives the memory back; called on a thread.
    """

    def __init__(self, holdings: Holdings, free: Callable[[], None]) -> None:
        self._holdings = holdings
        self._free = free
        self._seen = self._tidied = 0

    async def look(self) -> None:
        """Give memory back if requests came, and none since the last look."""
        opened = self._holdings.bodies.opened
        is_quiet = opened == self._seen and not self._holdings.answers.in_use_bytes
        self._seen = opened
        if is_quiet and opened != self._tidied:
            self._tidied = opened
            self._holdings.buffers.clear()
            await asyncio.to_thread(self._free)
