"""When a connection is read from."""

import asyncio
from collections import deque
from typing import Any

from uvicorn.protocols.http.flow_control import FlowControl


class Flow(FlowControl):
    """Reads nothing while requests wait for the answers of those before them.

    uvicorn's own goes on reading as soon as the request in work asks for more of its body: a
    client that sends requests and reads no answers would fill the memory.
    """

    def __init__(self, transport: asyncio.Transport, pipeline: deque[Any]) -> None:
        super().__init__(transport)
        self._pipeline = pipeline
        self._is_held = False

    def resume_reading(self) -> None:
        """Read on, unless requests are waiting."""
        if self._pipeline:
            return
        if self._is_held:
            self.read_paused = False
        else:
            super().resume_reading()

    def hold(self) -> None:
        """Read nothing, whoever asks for it, until `release`."""
        if not self._is_held:
            self._is_held = True
            self._transport.pause_reading()

    def release(self) -> None:
        """Read on, unless that was paused otherwise."""
        if self._is_held:
            self._is_held = False
            if not self.read_paused and not self.is_over():
                self._transport.resume_reading()

    def is_over(self) -> bool:
        """Whether nothing of what is read counts any more."""
        return self._transport.is_closing()
