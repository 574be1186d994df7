"""ONNX files of one model that share their weights: tidied, named alike, stored once.

All graphs refer to ``weights.bin`` by places that the sizes of the layer alone decide, so the
graph files of one layer fit the weights of every other layer of these sizes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
import onnx_ir
from numpy.typing import NDArray
from onnx import ModelProto

from export.errors import VerificationError
from export.marks import MARKS
from model.contract import WEIGHTS, WEIGHTS_FILE, AttentionSpec, Precision
from model.weights import STATE_NAMES, Weights, expected_shapes

# A page: onnxruntime maps external data from the file only where it starts on one.
ALIGNMENT_BYTES = 4096
IR_VERSION = 10
DTYPES: Final[dict[Precision, str]] = {"fp32": "<f4", "fp16": "<f2"}
FLOATS: Final = (onnx_ir.DataType.FLOAT, onnx_ir.DataType.FLOAT16)


@dataclass(frozen=True, slots=True)
class Place:
    """Where one weight lies in the shared file.

    Attributes:
        name: of the tensor in the graphs; ``W_q.weight.T`` is a transposed matrix.
        field: of `Weights`.
        shape: as stored.
        dtype: as stored, in numpy's letters: ``<f4`` or ``<f2``, little end first.
        offset: in bytes.
    """

    name: str
    field: str
    shape: tuple[int, ...]
    dtype: str
    offset: int

    @property
    def size_bytes(self) -> int:
        """What it takes of the file."""
        return np.dtype(self.dtype).itemsize * prod(self.shape)


def lay_out_weights(spec: AttentionSpec) -> dict[str, Place]:
    """The place of each weight, by its name in a state_dict: biases, then matrices."""
    places, end, shapes, dtype = {}, 0, expected_shapes(spec), DTYPES[spec.precision]
    for name in sorted(STATE_NAMES, key=lambda name: name.endswith(".weight")):
        field = STATE_NAMES[name]
        shape = shapes[field][::-1]
        stored = f"{name}.T" if len(shape) == 2 else name
        places[name] = Place(stored, field, shape, dtype, end + -end % ALIGNMENT_BYTES)
        end = places[name].offset + places[name].size_bytes
    return places


def write_weights(weights: Weights, path: Path) -> None:
    """Write all weights into one file, matrices transposed, rounded to the model's precision.

    Raises:
        VerificationError: if one is larger than any number of float16, where that is the precision.
    """
    with path.open("wb") as stream:
        for place in lay_out_weights(weights.spec).values():
            stream.write(bytes(place.offset - stream.tell()))
            stream.write(round_weight(place, getattr(weights, place.field)).data)


def round_weight(place: Place, array: NDArray[np.float32]) -> NDArray[Any]:
    """A weight as it is stored.

    Raises:
        VerificationError: if it has a number that becomes an infinity.
    """
    with np.errstate(over="ignore"):
        stored = np.ascontiguousarray(array.T, place.dtype)
    if not np.isfinite(stored).all():
        raise VerificationError(
            f"weight {place.field} holds numbers up to {np.abs(array).max():g}, and float16 ends "
            "at 65504; export the layer with --precision fp32"
        )
    return stored


def read_weights(path: Path, spec: AttentionSpec) -> Weights:
    """The weights in a file of `write_weights`; mapped, where they are float32.

    Raises:
        ValueError: if the file is too short for these sizes, or holds NaN or an infinity.
    """
    stored = np.memmap(path, DTYPES[spec.precision], "r")
    arrays = {}
    for place in lay_out_weights(spec).values():
        start = place.offset // stored.itemsize
        array = stored[start : start + prod(place.shape)].reshape(place.shape).T
        arrays[place.field] = array.astype(np.float32, copy=False)
    return Weights(spec, **arrays)


def refer_to_weights(model: onnx_ir.Model, spec: AttentionSpec) -> dict[str, str]:
    """Replace the marks of `marks.mark_weights` by their places in the shared file.

    Returns:
        The name of each weight, by that of its tensor in the graph.

    Raises:
        VerificationError: if a tensor of the graph is not one of the layer's weights.
    """
    left, names = lay_out_weights(spec), {}
    for name, value in model.graph.initializers.items():
        tensor = value.const_value
        if tensor is not None and tensor.dtype in FLOATS and len(tensor.shape):
            place = left.pop(find_mark(tensor), None)
            if place is None or (place.dtype, place.shape) != describe(tensor):
                raise VerificationError(
                    f"tensor '{name}' {list(tensor.shape)} of the graph is not a weight of the "
                    f"layer, expected {', '.join(STATE_NAMES)} alone"
                )
            names[name] = place.name
            value.const_value = onnx_ir.ExternalTensor(
                WEIGHTS_FILE,
                place.offset,
                place.size_bytes,
                tensor.dtype,
                shape=onnx_ir.Shape(place.shape),
                name=place.name,
            )
    return names


def find_mark(tensor: onnx_ir.TensorProtocol) -> str:
    """The weight that a tensor stands for; "" where its numbers are not those of a mark."""
    numbers = tensor.numpy()
    lowest, highest = numbers.min(), numbers.max()
    marks = {numbers.dtype.type(mark): name for name, mark in MARKS.items()}
    return marks.get(lowest, "") if lowest == highest else ""


def describe(tensor: onnx_ir.TensorProtocol) -> tuple[str, tuple[int, ...]]:
    """Datatype, in numpy's letters, and shape of a tensor."""
    numbers = tensor.numpy()
    return numbers.dtype.newbyteorder("<").str, numbers.shape


def tidy_graph(proto: ModelProto, spec: AttentionSpec, names: Mapping[str, str]) -> None:
    """Bring a traced graph into the form that is shipped, in place.

    Drops what the tracer wrote about its own work (paths of source files among it), leaves the
    operators' unused outputs out so that they are not computed, names the weights after the
    layer's parameters, and notes the sizes of the layer.

    Args:
        proto: the model.
        spec: of the layer.
        names: of the weights, by the tracer's names.
    """
    drop_tracer_notes(proto)
    drop_unused_outputs(proto)
    declare_weights_shape(proto)
    rename_tensors(proto, names)
    proto.producer_name = "limelight"
    proto.producer_version = ""
    proto.ir_version = IR_VERSION
    onnx.helper.set_model_props(proto, spec.to_properties())


def drop_tracer_notes(proto: ModelProto) -> None:
    """Remove metadata and documentation of nodes, values and weights."""
    graph = proto.graph
    for part in (*graph.node, *graph.initializer, *graph.input, *graph.output):
        del part.metadata_props[:]
        part.ClearField("doc_string")
    del graph.metadata_props[:]
    del graph.value_info[:]
    graph.ClearField("doc_string")
    proto.ClearField("doc_string")
    graph.name = "attention"


def drop_unused_outputs(proto: ModelProto) -> None:
    """Clear the names of node outputs that nothing reads; trailing ones are removed."""
    graph = proto.graph
    read = {name for node in graph.node for name in node.input}
    read |= {output.name for output in graph.output}
    for node in graph.node:
        kept = [name if name in read else "" for name in node.output]
        while kept and not kept[-1]:
            kept.pop()
        node.output[:] = kept


def declare_weights_shape(proto: ModelProto) -> None:
    """Declare the last axis of the attention weights free: shape inference makes it 0.

    It adds the length of the past keys, of which the graph has none, to nothing.
    """
    for output in proto.graph.output:
        if output.name == WEIGHTS:
            output.type.tensor_type.shape.dim[3].dim_param = "key_length"


def rename_tensors(proto: ModelProto, names: Mapping[str, str]) -> None:
    """Give stored tensors other names, here and in the nodes that read them."""
    for tensor in proto.graph.initializer:
        tensor.name = names.get(tensor.name, tensor.name)
    for node in proto.graph.node:
        node.input[:] = [names.get(name, name) for name in node.input]


def encode_graph(proto: ModelProto) -> bytes:
    """The bytes of the file; the same for the same graph."""
    content: bytes = proto.SerializeToString(deterministic=True)
    return content
