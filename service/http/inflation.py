"""A compressed body, inflated part by part to no more than a bound."""

import zlib
from collections.abc import Iterator
from typing import Final

from service.errors import InvalidRequestError, RequestTooLargeError
from service.http.compression import WBITS, Coding

# Memory that one call of zlib may ask for, whatever the body claims to hold.
STEP_BYTES: Final = 2**18
# RFC 1952, 2.2: a gzip body may be several, one after the other. Tools that compress blocks of
# 64 KiB write 1024 of them into 64 MiB; each costs a copy of what follows it.
MAX_MEMBERS: Final = 4096
FORMATS: Final[dict[Coding, str]] = {
    "gzip": "gzip (RFC 1952)",
    "deflate": "the zlib format (RFC 1950), not bare deflate data",
}


class Inflation:
    """Inflates one body.

    Args:
        coding: of the body.
        max_bytes: bound of the inflated body.
    """

    def __init__(self, coding: Coding, max_bytes: int) -> None:
        self._coding: Coding = coding
        self._max_bytes = max_bytes
        self._size_bytes = 0
        self._members = 0
        self._stream = zlib.decompressobj(WBITS[coding])

    def inflate(self, data: bytes) -> Iterator[bytes]:
        """Inflate the next part of the body, to be taken to its end before the next one.

        Yields:
            What it holds, in pieces of `STEP_BYTES` at most: 64 KiB may hold 64 MiB, and whoever
            takes them may have to wait for room.

        Raises:
            InvalidRequestError: if it is not in the coding's format.
            RequestTooLargeError: if all parts so far hold more than the bound.
        """
        while data:
            if not self._members or self._stream.eof:
                self._begin_member(data)
            try:
                piece = self._stream.decompress(data, STEP_BYTES)
            except zlib.error as error:
                raise self._refuse(str(error).rpartition(": ")[2]) from None
            data = self._stream.unused_data or self._stream.unconsumed_tail
            self._size_bytes += len(piece)
            self._check_size()
            yield piece

    def finish(self) -> None:
        """Check that the last part was the end.

        Raises:
            InvalidRequestError: if more should have come.
        """
        if self._members and not self._stream.eof:
            raise self._refuse("it ends too early")

    def _begin_member(self, data: bytes) -> None:
        if self._members:
            if self._coding != "gzip" or data[:1] != b"\x1f":
                raise self._refuse("other bytes follow its end")
            self._stream = zlib.decompressobj(WBITS[self._coding])
        self._members += 1
        if self._members > MAX_MEMBERS:
            raise self._refuse(f"it has more than {MAX_MEMBERS} members")

    def _check_size(self) -> None:
        if self._size_bytes > self._max_bytes:
            raise RequestTooLargeError(
                "the request body is larger than allowed after inflating, expected at most "
                f"{self._max_bytes} bytes (LIMELIGHT_MAX_REQUEST_BYTES)"
            )

    def _refuse(self, reason: str) -> InvalidRequestError:
        return InvalidRequestError(
            f"the body cannot be inflated: {reason}; Content-Encoding is {self._coding}, expected "
            f"{FORMATS[self._coding]}"
        )
