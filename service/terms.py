"""The terms on which one request is answered, whatever its door: what else the server has to do."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final


async def hold_nothing(size_bytes: int) -> None:
    """Do not bound the bytes of answers."""


def never(*_: object) -> bool:
    """Whether a request is alone, or has room at once; it is not known."""
    return False


def always(*_: object) -> bool:
    """Whether a request is alone, or has room at once; it is known that it is so."""
    return True


@dataclass(frozen=True, slots=True)
class Terms:
    """What is known of the others, and of the room that they leave.

    Attributes:
        hold: waits for room for the bytes of an answer, and holds them.
        try_hold: holds them if that needs no waiting; says whether it does.
        is_alone: whether no other request is there.
    """

    hold: Callable[[int], Awaitable[None]] = hold_nothing
    try_hold: Callable[[int], bool] = never
    is_alone: Callable[[], bool] = never


UNKNOWN: Final = Terms()
