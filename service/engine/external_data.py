"""Where an ONNX file keeps the tensors that it does not hold itself.

Read from protobuf's wire format (https://protobuf.dev/programming-guides/encoding/) with the
field numbers of https://github.com/onnx/onnx/blob/main/onnx/onnx.proto: the server has no onnx.
"""

from collections.abc import Iterator
from typing import Final, TypeAlias

from service.engine.model_fault import ModelFaultError

MAX_DEPTH: Final = 100  # of protobuf's own parsers
VARINT_BYTES: Final = 10
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
FIXED_BYTES: Final = {FIXED64: 8, FIXED32: 4}
LOCATION: Final = b"location"

Schema: TypeAlias = "dict[int, str]"
# The messages on the way from a model to its tensors, and the fields that lead there.
MESSAGES: Final[dict[str, Schema]] = {
    "Model": {7: "Graph", 20: "Training", 25: "Function"},
    "Training": {1: "Graph", 2: "Graph"},
    "Function": {7: "Node", 11: "Attribute"},
    "Graph": {1: "Node", 5: "Tensor", 15: "SparseTensor"},
    "Node": {5: "Attribute"},
    "Attribute": {
        5: "Tensor", 6: "Graph", 10: "Tensor", 11: "Graph", 22: "SparseTensor", 23: "SparseTensor",
    },
    "SparseTensor": {1: "Tensor", 2: "Tensor"},
    "Tensor": {13: "Entry"},
}  # fmt: skip


class OnnxFileError(ModelFaultError):
    """The file is not protobuf's wire format of an ONNX model."""


def find_locations(content: bytes) -> set[str]:
    """The names of the files that hold tensors of a model, as the model writes them.

    They may be anything: an absolute path, or one that leads out of the directory.

    Raises:
        OnnxFileError: if `content` is not an ONNX file.
    """
    return set(walk(memoryview(content), "Model", MAX_DEPTH))


def walk(message: memoryview, kind: str, depth: int) -> Iterator[str]:
    """The locations in one message.

    Raises:
        OnnxFileError: if it is malformed, or nested too deeply.
    """
    if depth == 0:
        raise OnnxFileError(f"its messages are nested more than {MAX_DEPTH} deep")
    if kind == "Entry":
        yield from read_entry(message)
        return
    fields = MESSAGES[kind]
    for number, value in read_fields(message):
        if number in fields:
            yield from walk(value, fields[number], depth - 1)


def read_entry(message: memoryview) -> Iterator[str]:
    """The value of an entry whose key says that it is a location; the last one of each counts."""
    entry = {number: bytes(value) for number, value in read_fields(message)}
    if entry.get(1) == LOCATION:
        yield entry.get(2, b"").decode(errors="backslashreplace")


def read_fields(message: memoryview) -> Iterator[tuple[int, memoryview]]:
    """Number and content of the fields that have a length; the others are passed over.

    Raises:
        OnnxFileError: if the message is cut, or holds what ONNX does not.
    """
    position = 0
    while position < len(message):
        key, position = read_varint(message, position)
        number, wire = key >> 3, key & 7
        if wire == VARINT:
            _, position = read_varint(message, position)
            continue
        if wire not in (BYTES, *FIXED_BYTES):
            raise OnnxFileError("it is not protobuf")
        size = FIXED_BYTES.get(wire, 0)
        if wire == BYTES:
            size, position = read_varint(message, position)
        if size > len(message) - position:
            raise OnnxFileError("it is not protobuf, or was cut")
        if wire == BYTES:
            yield number, message[position : position + size]
        position += size


def read_varint(message: memoryview, position: int) -> tuple[int, int]:
    """A number of variable length, and the position behind it.

    Raises:
        OnnxFileError: if it is cut, or longer than numbers are.
    """
    value = 0
    for index, byte in enumerate(message[position : position + VARINT_BYTES]):
        value |= (byte & 127) << 7 * index
        if byte < 128:
            return value, position + index + 1
    raise OnnxFileError("it is not protobuf, or was cut")
