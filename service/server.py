"""uvicorn's server, which tells the application that it is about to stop."""

from collections.abc import Callable
from types import FrameType

import uvicorn


class Server(uvicorn.Server):
    """Calls `on_stop` with the signal, before connections are closed one after the other."""

    def __init__(self, config: uvicorn.Config, on_stop: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_stop = on_stop

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop, or stop at once where a signal came before."""
        self._on_stop()
        super().handle_exit(sig, frame)
