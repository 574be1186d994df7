"""One number that was measured, beside what is wanted of it."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Figure:
    """A measurement, and its bounds.

    Attributes:
        name: what was measured.
        measured: the number.
        unit: of the number.
        least: what it may not fall below; anything where absent.
        most: what it may not exceed; anything where absent.
    """

    name: str
    measured: float
    unit: str = ""
    least: float | None = None
    most: float | None = None

    @property
    def is_met(self) -> bool:
        """Whether the number is within its bounds; one that is not a number is in none."""
        above = self.least is None or self.measured >= self.least
        below = self.most is None or self.measured <= self.most
        return above and below

    @property
    def wanted(self) -> str:
        """The bounds in words; empty where there are none."""
        if self.most == 0:  # of counts, all of them
            return "0"
        if self.least is not None and self.least == self.most:
            return f"{self.least:g}"
        parts = [f">= {self.least:g}"] if self.least is not None else []
        parts += [f"<= {self.most:g}"] if self.most is not None else []
        return " and ".join(parts)

    def describe(self) -> dict[str, Any]:
        """All of it, for a file."""
        return asdict(self) | {"is_met": self.is_met}

    def render(self) -> str:
        """One line of a table."""
        verdict = "" if not self.wanted else "met" if self.is_met else "MISSED"
        number = f"{self.measured:,.4g}" if self.measured < 1000 else f"{self.measured:,.0f}"
        return f"  {self.name:52} {number:>11} {self.unit:5} {self.wanted:>14}  {verdict}".rstrip()


def find_missed(results: Mapping[str, Iterable[Mapping[str, Any]]]) -> list[str]:
    """The check and the name of each figure that is not within its bounds.

    Args:
        results: the figures of each check, as they describe themselves.
    """
    return [
        f"{check}, {figure['name']}"
        for check, figures in results.items()
        for figure in figures
        if not figure["is_met"]
    ]
