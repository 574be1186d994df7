"""ONNX files of one model that share their weights: tidied, named alike, stored once."""

from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, numpy_helper

from export.errors import VerificationError
from model.contract import WEIGHTS, WEIGHTS_FILE, AttentionSpec
from model.weights import STATE_NAMES, Weights

# A page: onnxruntime maps external data from the file only where it starts on one.
ALIGNMENT_BYTES = 4096
IR_VERSION = 10


def tidy_graph(proto: ModelProto, spec: AttentionSpec, weights: Weights) -> None:
    """Bring a traced graph into the form that is shipped, in place.

    Drops what the tracer wrote about its own work (paths of source files among it), leaves the
    operators' unused outputs out so that they are not computed, names the weights after the
    layer's parameters, and notes the sizes of the layer.

    Raises:
        VerificationError: if a tensor of the graph is not one of the layer's weights.
    """
    drop_tracer_notes(proto)
    drop_unused_outputs(proto)
    declare_weights_shape(proto)
    name_weights(proto, weights)
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


def name_weights(proto: ModelProto, weights: Weights) -> None:
    """Call each weight as the layer does; ``W_q.weight.T`` is a transposed matrix.

    Raises:
        VerificationError: if a float tensor of the graph is not one of the layer's weights.
    """
    left = {name: getattr(weights, field) for name, field in STATE_NAMES.items()}
    left = {f"{n}.T" if a.ndim == 2 else n: a.T if a.ndim == 2 else a for n, a in left.items()}
    new_names = {}
    for tensor in stored_tensors(proto):
        array = numpy_helper.to_array(tensor)
        matches = [name for name, known in left.items() if np.array_equal(known, array)]
        if not matches:
            raise VerificationError(
                f"tensor '{tensor.name}' {list(array.shape)} of the graph is not a weight of the "
                f"layer, expected {', '.join(STATE_NAMES)} alone"
            )
        new_names[tensor.name] = matches[0]
        del left[matches[0]]
        tensor.name = matches[0]
    for node in proto.graph.node:
        node.input[:] = [new_names.get(name, name) for name in node.input]


def stored_tensors(proto: ModelProto) -> list[TensorProto]:
    """The tensors that go into the shared file: all of float32 with more than one number."""
    return [
        tensor
        for tensor in proto.graph.initializer
        if tensor.data_type == TensorProto.FLOAT and tensor.dims
    ]


def write_graphs(protos: dict[str, ModelProto], directory: Path) -> None:
    """Write each model under its file name, and the weights of all into one file beside them.

    Args:
        protos: by file name; tensors of one name hold the same numbers in all of them.
        directory: exists.

    Raises:
        ValueError: if two graphs disagree on a weight.
    """
    written: dict[str, tuple[int, NDArray[np.float32]]] = {}
    with (directory / WEIGHTS_FILE).open("wb") as stream:
        for proto in protos.values():
            for tensor in stored_tensors(proto):
                array = numpy_helper.to_array(tensor)
                if tensor.name not in written:
                    stream.write(bytes(-stream.tell() % ALIGNMENT_BYTES))
                    written[tensor.name] = (stream.tell(), array)
                    stream.write(array.astype("<f4").tobytes())
                offset, known = written[tensor.name]
                if not np.array_equal(known, array):
                    raise ValueError(f"the graphs disagree on weight '{tensor.name}'")
                point_to_file(tensor, offset, array.nbytes)
    for file_name, proto in protos.items():
        (directory / file_name).write_bytes(proto.SerializeToString(deterministic=True))


def point_to_file(tensor: TensorProto, offset: int, size_bytes: int) -> None:
    """Replace the numbers of `tensor` by their place in the shared file."""
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, text in (("location", WEIGHTS_FILE), ("offset", offset), ("length", size_bytes)):
        entry = tensor.external_data.add()
        entry.key, entry.value = key, str(text)
