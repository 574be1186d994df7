"""npz bodies: a zip archive of npy files, as ``numpy.savez`` writes it.

Nothing is unpickled, and no size in the archive is believed before it is checked.
"""

import io
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from service.errors import InvalidRequestError, RequestTooLargeError
from service.protocol.npy import decode_npy
from service.protocol.view_file import ViewFile

METHODS: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
SUFFIX: Final = ".npy"
MAX_MEMBERS: Final = 64
LOCAL_HEADER_BYTES: Final = 30
ENCRYPTED: Final = 0x1
# What zipfile and zlib raise on broken archives, besides their own errors.
BROKEN: Final = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    IndexError,
    NotImplementedError,
    OSError,
    OverflowError,
    RuntimeError,
    ValueError,
)


def decode_npz(body: bytes | memoryview, max_bytes: int) -> dict[str, NDArray[Any]]:
    """Read the arrays of an archive.

    Args:
        body: the archive.
        max_bytes: bound of all arrays together, after inflating.

    Returns:
        Little-endian, row-major arrays by name.

    Raises:
        InvalidRequestError: if archive or array is malformed, or an array holds objects.
        RequestTooLargeError: if the arrays are larger than `max_bytes`.
    """
    try:
        with zipfile.ZipFile(open_view(body)) as archive:
            members = archive.infolist()
            check_members(members, max_bytes)
            files = {member.filename: read_member(archive, member) for member in members}
    except BROKEN as error:
        raise InvalidRequestError(f"the npz archive cannot be read: {show(error)}") from None
    return {name.removesuffix(SUFFIX): decode_npy(name, data) for name, data in files.items()}


def count_bytes(body: bytes | memoryview, max_bytes: int) -> int:
    """Memory that the arrays of an archive will take, by what it declares.

    Raises:
        InvalidRequestError: if the archive is malformed.
        RequestTooLargeError: if the arrays are larger than `max_bytes`.
    """
    try:
        with zipfile.ZipFile(open_view(body)) as archive:
            members = archive.infolist()
            check_members(members, max_bytes)
    except BROKEN as error:
        raise InvalidRequestError(f"the npz archive cannot be read: {show(error)}") from None
    return sum(member.file_size for member in members)


def open_view(body: bytes | memoryview) -> io.BufferedReader:
    """The archive as a file; it is not copied."""
    return io.BufferedReader(ViewFile(body))


def check_members(members: list[zipfile.ZipInfo], max_bytes: int) -> None:
    """Refuse what only a hostile or broken archive holds, before reading any member.

    Raises:
        InvalidRequestError: for odd names, methods, encryption, or overlapping members.
        RequestTooLargeError: if the declared sizes exceed `max_bytes`; reading stops there.
    """
    if len(members) > MAX_MEMBERS:
        raise InvalidRequestError(
            f"the npz archive has {len(members)} members, expected at most {MAX_MEMBERS}"
        )
    names: set[str] = set()
    end = 0
    for member in sorted(members, key=lambda m: m.header_offset):
        name = member.filename
        if name in names or not name.endswith(SUFFIX):
            reason = "comes twice" if name in names else f"has no suffix {SUFFIX}"
            raise InvalidRequestError(f"member {name!a} of the npz archive {reason}")
        if member.compress_type not in METHODS or member.flag_bits & ENCRYPTED:
            raise InvalidRequestError(
                f"member {name!a} of the npz archive is encrypted or compressed in another "
                "way than deflate; write it with numpy.savez"
            )
        if member.header_offset < end:
            raise InvalidRequestError(f"member {name!a} of the npz archive overlaps another")
        names.add(name)
        end = member.header_offset + LOCAL_HEADER_BYTES + member.compress_size
    total = sum(member.file_size for member in members)
    if total > max_bytes:
        raise RequestTooLargeError(
            f"the npz archive holds {total} bytes, expected at most {max_bytes} "
            "(LIMELIGHT_MAX_REQUEST_BYTES)"
        )


def read_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    """Inflate one member, to no more than it declares.

    ``ZipFile.read`` inflates all of it, and compares with the declared size then only: 300 KB of
    a lying member took 600 MB.
    """
    with archive.open(member) as stream:
        return stream.read(member.file_size)


def encode_npz(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Write arrays as ``numpy.savez`` does."""
    stream = io.BytesIO()
    np.savez(stream, allow_pickle=False, **arrays)
    return stream.getvalue()


def show(error: Exception) -> str:
    """The first line of an error's text, bounded."""
    lines = str(error).splitlines() or [type(error).__name__]
    return lines[0][:120]
