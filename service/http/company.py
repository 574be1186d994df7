"""Whether requests come from one client at a time."""

from typing import Final

# Of two requests from two connections within this time, the second came while the first was there,
# or as good as: the event loop reads one after the other, and answers each at once.
APART_S: Final = 0.005


class Company:
    """Notes when requests begin, and on which connections."""

    def __init__(self) -> None:
        self._last: int | None = None
        self._last_s = self._until_s = 0.0

    def note(self, connection: object, now_s: float) -> None:
        """Note that a request begins.

        Args:
            connection: on which it comes.
            now_s: by the clock of the event loop.
        """
        if id(connection) != self._last:
            if now_s - self._last_s < APART_S:
                self._until_s = now_s + APART_S
            self._last = id(connection)
        self._last_s = now_s

    def is_there(self, now_s: float) -> bool:
        """Whether several clients were asking a moment ago."""
        return now_s < self._until_s
