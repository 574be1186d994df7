"""Something that was found and is no number."""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Note:
    """A finding in words, which nothing is wanted of.

    Attributes:
        name: what was looked at.
        text: what was found.
    """

    name: str
    text: str

    @property
    def is_met(self) -> bool:
        """Always: a note has no bounds."""
        return True

    def describe(self) -> dict[str, Any]:
        """All of it, for a file."""
        return asdict(self) | {"is_met": self.is_met}

    def render(self) -> str:
        """One line of a table."""
        return f"  {self.name:52} {self.text}"
