"""The input tensors of a V2 request: JSON data, or views into the body."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from service.datatypes import DTYPES
from service.errors import InvalidRequestError, NotOfferedError
from service.protocol.json_numbers import OddListError
from service.protocol.json_outline import LongList
from service.protocol.json_tensor import convert_scalars, flatten_list
from service.protocol.json_text import name_type
from service.protocol.options import show
from service.protocol.shapes import check_shape
from service.protocol.v2_members import SHARED_MEMORY, read_entry, read_list, read_parameters


def read_inputs(root: dict[str, Any], binary: memoryview) -> dict[str, NDArray[Any]]:
    """All input tensors by name.

    Raises:
        InvalidRequestError: if one is malformed or comes twice, or bytes are missing or left.
    """
    inputs = read_list(root, "inputs")
    tensors: dict[str, NDArray[Any]] = {}
    offset = 0
    for item in inputs:
        entry, name = read_entry(item, "input")
        if name in tensors:
            raise InvalidRequestError(f"input '{name}' comes twice, expected once")
        size = read_binary_size(entry, name)
        if size is None:
            tensors[name] = read_json_tensor(entry, name)
        else:
            tensors[name] = view_tensor(entry, name, binary, offset, size)
            offset += size
    if offset != len(binary):
        raise InvalidRequestError(
            f"{len(binary)} bytes follow the JSON, but the inputs' binary_data_size add up to "
            f"{offset}"
        )
    return tensors


def read_binary_size(entry: dict[str, Any], name: str) -> int | None:
    """The size of an input's binary data in bytes; nothing where its data is JSON.

    Raises:
        InvalidRequestError: unless exactly one of the two is there.
        NotOfferedError: for shared memory.
    """
    parameters = read_parameters(entry, f"input '{name}'")
    if SHARED_MEMORY in parameters:
        raise NotOfferedError(
            f"input '{name}' asks for shared memory, which is not offered; send its data"
        )
    size = parameters.get("binary_data_size")
    if (size is None) == ("data" not in entry):
        given = "neither 'data' nor" if size is None else "both 'data' and"
        raise InvalidRequestError(
            f"input '{name}' has {given} parameter 'binary_data_size', expected one of them"
        )
    if size is not None and (type(size) is not int or size < 0):
        raise InvalidRequestError(
            f"parameter 'binary_data_size' of input '{name}' is {show(size)}, "
            "expected a number of bytes"
        )
    return size


def read_datatype(entry: dict[str, Any], name: str) -> str:
    """The datatype of an input, exactly as the protocol spells it.

    Raises:
        InvalidRequestError: if it is another.
    """
    datatype = entry.get("datatype")
    if not isinstance(datatype, str) or datatype not in DTYPES:
        raise InvalidRequestError(
            f"input '{name}' has datatype {show(datatype)}, expected one of {', '.join(DTYPES)}"
        )
    return datatype


def read_shape(entry: dict[str, Any], name: str) -> tuple[int, ...]:
    """The shape of an input.

    Raises:
        InvalidRequestError: if it is not a list of whole numbers, 0 or more.
    """
    shape = entry.get("shape")
    if not isinstance(shape, list):
        raise InvalidRequestError(
            f"input '{name}' has shape {show(shape)}, expected a list of whole numbers"
        )
    return check_shape(f"input '{name}'", shape)


def read_json_tensor(entry: dict[str, Any], name: str) -> NDArray[Any]:
    """An input whose ``data`` is JSON, flat or nested; its elements are read in row-major order.

    Raises:
        InvalidRequestError: if data, datatype and shape do not fit together.
        OddListError: if that is so, or may be, of a long list.
    """
    datatype, shape = read_datatype(entry, name), read_shape(entry, name)
    data = entry["data"]
    if isinstance(data, LongList):
        return read_long(data, name, datatype, shape)
    if not isinstance(data, list):
        raise InvalidRequestError(f"'data' of input '{name}' is {name_type(data)}, expected a list")
    _, scalars = flatten_list(name, data)
    if len(scalars) != math.prod(shape):
        raise InvalidRequestError(
            f"input '{name}' has {len(scalars)} elements, expected {math.prod(shape)} "
            f"for shape {list(shape)}"
        )
    return convert_scalars(name, scalars, datatype).reshape(shape)


def read_long(data: LongList, name: str, datatype: str, shape: tuple[int, ...]) -> NDArray[Any]:
    """An input whose ``data`` is a long list.

    Raises:
        OddListError: if it may be no list of as many numbers as `shape` says.
    """
    array = data.read(name, datatype)
    if array.size != math.prod(shape):
        raise OddListError
    return array.reshape(shape)


def view_tensor(
    entry: dict[str, Any], name: str, binary: memoryview, offset: int, size_bytes: int
) -> NDArray[Any]:
    """An input whose data is part of the body, without copying.

    Args:
        entry: of the input.
        name: of the input.
        binary: the part of the body that follows the JSON.
        offset: of the tensor in `binary`, in bytes.
        size_bytes: of the tensor.

    Returns:
        A read-only, row-major array; it keeps the body alive.

    Raises:
        InvalidRequestError: if shape, datatype, size and body disagree.
    """
    datatype, shape = read_datatype(entry, name), read_shape(entry, name)
    expected = math.prod(shape) * DTYPES[datatype].itemsize
    if size_bytes != expected:
        raise InvalidRequestError(
            f"input '{name}' has binary_data_size {size_bytes}, expected {expected} for shape "
            f"{list(shape)} of {datatype}"
        )
    if offset + size_bytes > len(binary):
        raise InvalidRequestError(
            f"input '{name}' needs {size_bytes} bytes at offset {offset} behind the JSON, but "
            f"only {len(binary)} follow it"
        )
    data = binary[offset : offset + size_bytes]
    return np.frombuffer(data, DTYPES[datatype]).reshape(shape)
