"""Something that was found and is no number."""

from dataclasses import dataclass


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

    def render(self) -> str:
        """One line of a table."""
        return f"  {self.name:52} {self.text}"
