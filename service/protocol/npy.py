"""npy files: one array each, behind a header that is a Python literal.

https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html. Read here rather than by
numpy, which tokenizes headers that are no literals and takes any dtype that a text can name.
"""

import ast
import math
import re
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from service.errors import InvalidRequestError
from service.protocol.shapes import check_shape

MAGIC: Final = b"\x93NUMPY"
VERSION_BYTES: Final = 2
LENGTH_BYTES: Final = {(1, 0): 2, (2, 0): 4}
MAX_HEADER_BYTES: Final = 10000  # as numpy
MEMBERS: Final = {"descr", "fortran_order", "shape"}
DTYPE: Final = re.compile(r"[<>|](b1|[iu][1248]|f[248])")
# What ast raises on a text that is no literal.
BROKEN: Final = (ValueError, TypeError, SyntaxError, MemoryError, RecursionError)


def decode_npy(name: str, data: bytes) -> NDArray[Any]:
    """Read one npy file.

    Args:
        name: of the array, for messages.
        data: the whole file.

    Returns:
        A little-endian, row-major array; it may be a read-only view into `data`.

    Raises:
        InvalidRequestError: if header and data disagree, or the array does not hold numbers.
    """
    header, body = split_header(name, memoryview(data))
    dtype = read_dtype(name, header["descr"])
    shape = read_shape(name, header["shape"])
    expected = math.prod(shape) * dtype.itemsize
    if len(body) != expected:
        raise InvalidRequestError(
            f"array {name!a} has {len(body)} bytes of data, expected {expected} for shape "
            f"{list(shape)} of {dtype}"
        )
    flat = np.frombuffer(body, dtype)
    array = flat.reshape(shape[::-1]).T if header["fortran_order"] else flat.reshape(shape)
    return np.ascontiguousarray(array, dtype.newbyteorder("<")).reshape(shape)


def split_header(name: str, view: memoryview) -> tuple[dict[str, Any], memoryview]:
    """The members of a header, and the bytes that follow it.

    Raises:
        InvalidRequestError: if magic, version, length or text is wrong.
    """
    start = len(MAGIC) + VERSION_BYTES
    version = tuple(view[len(MAGIC) : start])
    if bytes(view[: len(MAGIC)]) != MAGIC or version not in LENGTH_BYTES:
        raise InvalidRequestError(f"array {name!a} is not an npy file of format 1.0 or 2.0")
    opening = start + LENGTH_BYTES[version]
    size = int.from_bytes(view[start:opening], "little")
    if size > min(MAX_HEADER_BYTES, len(view) - opening):
        raise InvalidRequestError(f"the npy header of array {name!a} is too long or cut off")
    text = bytes(view[opening : opening + size]).decode("latin-1")
    try:
        header = ast.literal_eval(text.strip())
    except BROKEN:
        header = None
    if not isinstance(header, dict) or header.keys() != MEMBERS:
        raise InvalidRequestError(
            f"the npy header of array {name!a} cannot be read, expected a dict of descr, "
            "fortran_order and shape"
        )
    return header, view[opening + size :]


def read_dtype(name: str, descr: object) -> np.dtype[Any]:
    """The dtype of an array of numbers or booleans.

    Raises:
        InvalidRequestError: for any other; objects would have to be unpickled.
    """
    if not isinstance(descr, str) or not DTYPE.fullmatch(descr):
        shown = ascii(descr)
        shown = shown if len(shown) <= 64 else f"{shown[:61]}..."
        raise InvalidRequestError(
            f"array {name!a} has dtype {shown}, expected numbers or booleans of at most 8 bytes"
        )
    return np.dtype(descr)


def read_shape(name: str, shape: object) -> tuple[int, ...]:
    """The shape of an array.

    Raises:
        InvalidRequestError: if it is not a tuple of sizes.
    """
    if not isinstance(shape, tuple):
        raise InvalidRequestError(f"array {name!a} has no shape, expected a tuple")
    return check_shape(f"array {name!a}", shape)
