"""npz bodies: a zip archive of npy files, as ``numpy.savez`` writes it.

https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html. Nothing is unpickled, and
no size in the archive is believed before it is checked.
"""

import io
import math
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from service.errors import InvalidRequestError, RequestTooLargeError

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


def decode_npz(body: bytes, max_bytes: int) -> dict[str, NDArray[Any]]:
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
        with zipfile.ZipFile(io.BytesIO(body)) as archive:
            members = archive.infolist()
            check_members(members, max_bytes)
            files = {member.filename: archive.read(member) for member in members}
    except BROKEN as error:
        raise InvalidRequestError(f"the npz archive cannot be read: {show(error)}") from None
    return {name.removesuffix(SUFFIX): decode_npy(name, data) for name, data in files.items()}


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


def decode_npy(name: str, data: bytes) -> NDArray[Any]:
    """Read one npy file.

    Raises:
        InvalidRequestError: if header and data disagree, or the array does not hold numbers.
    """
    stream = io.BytesIO(data)
    shape, fortran_order, dtype = read_header(name, stream)
    if dtype.kind not in "biuf" or dtype.itemsize > 8:
        raise InvalidRequestError(f"array {name!a} has dtype {dtype}, expected numbers or booleans")
    rest = len(data) - stream.tell()
    expected = math.prod(shape) * dtype.itemsize
    if rest != expected or any(size < 0 for size in shape):
        raise InvalidRequestError(
            f"array {name!a} has {rest} bytes of data, expected {expected} for shape "
            f"{list(shape)} of {dtype}"
        )
    flat = np.frombuffer(memoryview(data)[stream.tell() :], dtype)
    array = flat.reshape(shape[::-1]).T if fortran_order else flat.reshape(shape)
    return np.ascontiguousarray(array, dtype.newbyteorder("<")).reshape(shape)


def read_header(name: str, stream: io.BytesIO) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, order and dtype of an npy file.

    Raises:
        InvalidRequestError: if numpy cannot read the header.
    """
    readers = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
    try:
        version = npy.read_magic(stream)
        if version not in readers:
            raise ValueError(f"format {version} is not read")
        return readers[version](stream)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError, EOFError) as error:
        raise InvalidRequestError(
            f"array {name!a} has no npy header that can be read: {show(error)}"
        ) from None


def encode_npz(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Write arrays as ``numpy.savez`` does."""
    stream = io.BytesIO()
    np.savez(stream, allow_pickle=False, **arrays)
    return stream.getvalue()


def show(error: Exception) -> str:
    """The first line of an error's text, bounded."""
    lines = str(error).splitlines() or [type(error).__name__]
    return lines[0][:120]
