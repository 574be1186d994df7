"""The states of versions, as the index of the model repository lists them.

https://github.com/triton-inference-server/server/blob/main/docs/protocol/extension_model_repository.md
"""

from collections.abc import Iterable
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, TypeAlias

ModelState: TypeAlias = Literal["READY", "LOADING", "UNLOADING", "UNAVAILABLE"]
Key: TypeAlias = tuple[str, str]


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """One version of a model.

    Attributes:
        name: of the model.
        version: of the model; empty where its directory cannot be looked at.
        state: whether it serves.
        reason: why it does not, or why a newer one of the same number does not.
    """

    name: str
    version: str
    state: ModelState
    reason: str = ""


class ModelIndex:
    """The entries, by name and version; one thread changes them, any may read."""

    def __init__(self) -> None:
        self._entries = MappingProxyType(dict[Key, IndexEntry]())

    def put(self, entry: IndexEntry) -> None:
        """Set the state of a version."""
        key = (entry.name, entry.version)
        if self._entries.get(key) != entry:
            self._entries = MappingProxyType({**self._entries, key: entry})

    def drop(self, key: Key) -> None:
        """Forget a version that is known."""
        kept = {other: entry for other, entry in self._entries.items() if other != key}
        self._entries = MappingProxyType(kept)

    def find(self, key: Key) -> IndexEntry | None:
        """The entry of a version, if it is known."""
        return self._entries.get(key)

    def list_of(self, name: str) -> list[IndexEntry]:
        """The entries of one model."""
        return sort_entries(entry for entry in self._entries.values() if entry.name == name)

    def list_all(self) -> list[IndexEntry]:
        """The entries, sorted by name and number."""
        return sort_entries(self._entries.values())


def sort_entries(entries: Iterable[IndexEntry]) -> list[IndexEntry]:
    """Entries by name, and by version as a number."""
    return sorted(entries, key=lambda entry: (entry.name, int(entry.version or 0)))
