"""safetensors bodies: a JSON header, then the tensors' bytes without gaps.

https://github.com/huggingface/safetensors#format. Read here rather than by the library, which
copies each tensor, and written here for the sake of one order.
"""

import json
import math
from collections.abc import Mapping
from typing import Any, Final, NoReturn

import numpy as np
from numpy.typing import NDArray

from service.errors import InvalidRequestError
from service.protocol.json_members import unite_members
from service.protocol.json_text import name_type
from service.protocol.options import show
from service.protocol.shapes import check_shape

LENGTH_BYTES: Final = 8
MAX_HEADER_BYTES: Final = 65536  # the format allows 100 MB; six tensors take some 500 bytes
METADATA: Final = "__metadata__"
DTYPES: Final = {
    "BOOL": "?",
    "U8": "u1",
    "I8": "i1",
    "U16": "<u2",
    "I16": "<i2",
    "U32": "<u4",
    "I32": "<i4",
    "U64": "<u8",
    "I64": "<i8",
    "F16": "<f2",
    "F32": "<f4",
    "F64": "<f8",
}


def decode_safetensors(body: bytes | memoryview) -> dict[str, NDArray[Any]]:
    """Read the tensors of a body.

    Returns:
        Read-only, row-major views into `body` by name.

    Raises:
        InvalidRequestError: if the header is malformed, or disagrees with the data.
    """
    view = memoryview(body)
    header, data = split_header(view)
    arrays: dict[str, NDArray[Any]] = {}
    end = 0
    entries = [read_entry(name, entry) for name, entry in header.items() if name != METADATA]
    for name, dtype, shape, start, stop in sorted(entries, key=lambda entry: entry[3:]):
        if start != end or stop - start != math.prod(shape) * dtype.itemsize or stop > len(data):
            raise InvalidRequestError(
                f"tensor {show(name)} has data_offsets [{start}, {stop}], expected "
                f"[{end}, {end + math.prod(shape) * dtype.itemsize}] for shape {list(shape)} of "
                f"{dtype}, within {len(data)} bytes of data"
            )
        arrays[name] = np.frombuffer(data[start:stop], dtype).reshape(shape)
        end = stop
    if end != len(data):
        raise InvalidRequestError(
            f"the safetensors body has {len(data)} bytes of data, but its tensors end at {end}"
        )
    return arrays


def split_header(view: memoryview) -> tuple[dict[str, Any], memoryview]:
    """The header's members, and the bytes that follow it.

    Raises:
        InvalidRequestError: if the length is wrong, or the header is not a JSON object whose
            names are all different.
    """
    if len(view) < LENGTH_BYTES:
        raise InvalidRequestError(
            f"the safetensors body has {len(view)} bytes, expected at least {LENGTH_BYTES}"
        )
    size = int.from_bytes(view[:LENGTH_BYTES], "little")
    if size > min(MAX_HEADER_BYTES, len(view) - LENGTH_BYTES):
        raise InvalidRequestError(
            f"the safetensors header has {size} bytes by its first 8, expected at most "
            f"{min(MAX_HEADER_BYTES, len(view) - LENGTH_BYTES)}"
        )
    text = bytes(view[LENGTH_BYTES : LENGTH_BYTES + size])
    try:
        header = json.loads(
            text.decode(), object_pairs_hook=unite_members, parse_constant=refuse_constant
        )
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else error
        raise InvalidRequestError(f"the safetensors header is not JSON: {reason}") from None
    if not isinstance(header, dict):
        raise InvalidRequestError(
            f"the safetensors header is {name_type(header)}, expected a JSON object"
        )
    return header, view[LENGTH_BYTES + size :]


def refuse_constant(token: str) -> NoReturn:
    """NaN and infinities are not JSON.

    Raises:
        ValueError: always.
    """
    raise ValueError(f"{token} is not a number")


def read_entry(name: str, entry: object) -> tuple[str, np.dtype[Any], tuple[int, ...], int, int]:
    """Name, dtype, shape and offsets of one tensor.

    Raises:
        InvalidRequestError: if a member is missing or of another type.
    """
    members = entry if isinstance(entry, dict) else {}
    dtype: Any = members.get("dtype")
    shape: Any = members.get("shape")
    offsets: Any = members.get("data_offsets")
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise InvalidRequestError(
            f"tensor {show(name)} has dtype {show(dtype)}, expected one of {', '.join(DTYPES)}"
        )
    if not isinstance(shape, list):
        raise InvalidRequestError(
            f"tensor {show(name)} has no shape, expected a list of whole numbers"
        )
    if not is_pair(offsets):
        raise InvalidRequestError(
            f"tensor {show(name)} has no data_offsets, expected two whole numbers"
        )
    sizes = check_shape(f"tensor {show(name)}", shape)
    return name, np.dtype(DTYPES[dtype]), sizes, offsets[0], offsets[1]


def is_pair(value: object) -> bool:
    """Whether a value is a list of two whole numbers of 64 bits, 0 or more; booleans are none."""
    numbers = value if isinstance(value, list) else []
    return len(numbers) == 2 and all(type(n) is int and 0 <= n < 2**64 for n in numbers)


def encode_safetensors(arrays: Mapping[str, NDArray[Any]], notes: Mapping[str, str]) -> bytes:
    """Write arrays, and `notes` as the format's metadata.

    Not by the library, which puts the metadata into another order in every call: the same answer
    has the same bytes. The header is padded to a multiple of 8, so that the data is aligned.
    """
    header: dict[str, Any] = {METADATA: dict(notes)}
    chunks: list[memoryview] = []
    end = 0
    for name, array in arrays.items():
        chunks.append(np.ascontiguousarray(array).data.cast("B"))
        start, end = end, end + array.nbytes
        dtype = next(d for d, numpy_name in DTYPES.items() if array.dtype == numpy_name)
        header[name] = {"dtype": dtype, "shape": array.shape, "data_offsets": [start, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text = text.ljust(-(-len(text) // LENGTH_BYTES) * LENGTH_BYTES)
    return b"".join([len(text).to_bytes(LENGTH_BYTES, "little"), text, *chunks])
