"""Bytes in memory, read as a file without a copy of them."""

import io
from typing import Any


class ViewFile(io.RawIOBase):
    """Reads from a view; ``io.BytesIO`` copies whatever is not ``bytes``.

    Args:
        data: what the file holds.
    """

    def __init__(self, data: bytes | memoryview) -> None:
        self._data = memoryview(data)
        self._place = 0

    def readable(self) -> bool:
        """Whether it can be read."""
        return True

    def seekable(self) -> bool:
        """Whether it can be read from any place."""
        return True

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 - typeshed's own name for it is private
        """Copy what comes next into a buffer; says how many bytes."""
        part = self._data[self._place : self._place + len(buffer)]
        buffer[: len(part)] = part
        self._place += len(part)
        return len(part)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place, and say which it is.

        Raises:
            OSError: if it lies before the first byte, as with a file on the disk.
        """
        bases = {io.SEEK_SET: 0, io.SEEK_CUR: self._place, io.SEEK_END: len(self._data)}
        place = bases[whence] + offset
        if place < 0:
            raise OSError(f"place {place} lies before the first byte")
        self._place = place
        return place
