"""How many connections each worker has, in memory that all of them see."""

from ctypes import c_int
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Final

ABSENT: Final = -1


class Turns:
    """Counts of connections, one for each place; a worker writes the count of its own place alone.

    Args:
        places: for workers, those that leave and those that come among them.
    """

    def __init__(self, places: int) -> None:
        self._counts = get_context("spawn").RawArray(c_int, [ABSENT] * places)

    def write(self, place: int, connections: int) -> None:
        """Note how many connections a worker has, or that it takes none: `ABSENT`."""
        self._counts[place] = connections

    def has_fewer_elsewhere(self, place: int) -> bool:
        """Whether a worker of another place takes connections and has fewer of them."""
        counts = self._counts[:]
        return any(ABSENT < each < counts[place] for each in counts)


@dataclass(frozen=True)
class Seat:
    """A worker's place among the others.

    Attributes:
        turns: of all.
        place: of this one.
        is_late: whether others serve already.
    """

    turns: Turns
    place: int
    is_late: bool

    def write(self, connections: int) -> None:
        """Note how many connections it has."""
        self.turns.write(self.place, connections)

    def leave(self) -> None:
        """Note that it takes no connections."""
        self.turns.write(self.place, ABSENT)

    def is_next(self) -> bool:
        """Whether no other worker should take the next connection."""
        return not self.turns.has_fewer_elsewhere(self.place)
