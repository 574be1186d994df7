"""Looks at something, again and again."""

import asyncio
from collections.abc import Awaitable, Callable


class Polling:
    """Calls `look` again and again, with a pause after each.

    Args:
        look: raises nothing.
        pause_s: between the end of one look and the next.
    """

    def __init__(self, look: Callable[[], Awaitable[None]], pause_s: float) -> None:
        self._look = look
        self._pause_s = pause_s
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin, on the running event loop."""
        self._task = asyncio.create_task(self._run())

    def stop(self) -> None:
        """Look no more."""
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._pause_s)
            await self._look()
