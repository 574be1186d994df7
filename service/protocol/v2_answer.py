"""Answers of the Open Inference Protocol V2: JSON, with binary data behind it where asked for."""

from collections.abc import Iterable
from functools import lru_cache
from math import prod
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from service.datatypes import name_dtype
from service.errors import InvalidRequestError
from service.inference import Answer
from service.protocol.json_writer import write_json
from service.protocol.v2_outputs import WantedOutput
from service.protocol.v2_request import HEADER_LENGTH

JSON_TYPE: Final = "application/json"
BINARY_TYPE: Final = "application/octet-stream"
MAX_HEADS: Final = 128
Parts = tuple[bytes | memoryview, ...]
DType = np.dtype[Any]


def encode_answer(
    answer: Answer, request_id: str, outputs: Iterable[WantedOutput]
) -> tuple[Parts, dict[str, str]]:
    """Encode an answer.

    JSON data is flat and in row-major order, each number with the digits that give the same
    float32 back. An output has ``parameters`` only where it is binary: C++ clients look for
    ``binary_data_size`` in any.

    Returns:
        The body, in parts whose data are those of the answer, and its headers.

    Raises:
        InvalidRequestError: if JSON was asked for and a number is not finite.
    """
    arrays = [(output, np.ascontiguousarray(answer.tensors[output.name])) for output in outputs]
    chunks = [array.data.cast("B") for output, array in arrays if output.binary]
    # An id may be as long as a body, and is another each time: none is kept.
    if len(chunks) == len(arrays) and not request_id:
        shapes = tuple((output.name, array.shape, array.dtype) for output, array in arrays)
        text = write_binary_head(answer.model, answer.version, shapes)
    else:
        entries = [describe(output, array) for output, array in arrays]
        text = write_head(answer.model, answer.version, request_id, entries)
    if not chunks:
        return (text,), {"Content-Type": JSON_TYPE}
    headers = {"Content-Type": BINARY_TYPE, HEADER_LENGTH: str(len(text))}
    return (text, *chunks), headers


@lru_cache(MAX_HEADS)
def write_binary_head(
    model: str,
    version: str,
    outputs: tuple[tuple[str, tuple[int, ...], DType], ...],
) -> bytes:
    """The JSON of an answer without id, all of whose outputs are binary."""
    return write_head(model, version, "", [describe_binary(*output) for output in outputs])


def write_head(model: str, version: str, request_id: str, entries: list[dict[str, Any]]) -> bytes:
    """The JSON of an answer."""
    head: dict[str, Any] = {"model_name": model, "model_version": version}
    if request_id:
        head["id"] = request_id
    return write_json(head | {"outputs": entries})


def describe(output: WantedOutput, array: NDArray[Any]) -> dict[str, Any]:
    """One output in the JSON of an answer, with its data unless they are binary.

    Raises:
        InvalidRequestError: if JSON was asked for and a number is not finite.
    """
    if output.binary:
        return describe_binary(output.name, array.shape, array.dtype)
    check_finite(output.name, array)
    entry = {"name": output.name, "shape": array.shape, "datatype": name_dtype(array.dtype)}
    return entry | {"data": array.ravel()}


def describe_binary(name: str, shape: tuple[int, ...], dtype: DType) -> dict[str, Any]:
    """One output in the JSON of an answer whose data are behind it."""
    size_bytes = prod(shape) * dtype.itemsize
    entry = {"name": name, "shape": shape, "datatype": name_dtype(dtype)}
    return entry | {"parameters": {"binary_data_size": size_bytes}}


def check_finite(name: str, array: NDArray[Any]) -> None:
    """Refuse to write NaN or an infinity as JSON, which has no spelling for them.

    Raises:
        InvalidRequestError: telling to ask for binary data.
    """
    if not np.isfinite(array).all():
        raise InvalidRequestError(
            f"output '{name}' holds NaN or an infinity, which JSON cannot say; ask for binary "
            "data (V2: parameter binary_data; /v1: ?format=npz) or send finite inputs"
        )
