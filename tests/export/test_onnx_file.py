"""The files: one copy of the weights, and no word of how or where they were made."""

import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper

from export.errors import VerificationError
from export.onnx_file import ALIGNMENT_BYTES, name_weights, write_graphs
from model.contract import GRAPHS, WEIGHTS_FILE, AttentionSpec, GraphSpec
from model.weights import STATE_NAMES, Weights

every_graph = pytest.mark.parametrize("graph", GRAPHS, ids=lambda graph: graph.name)


def load(exported: Path, graph: GraphSpec, *, data: bool = False) -> onnx.ModelProto:
    return onnx.load(exported / graph.file, load_external_data=data)


def places(proto: onnx.ModelProto) -> dict[str, tuple[int, int]]:
    """Offset and length in the shared file of each weight."""
    found = {}
    for tensor in proto.graph.initializer:
        entries = {entry.key: entry.value for entry in tensor.external_data}
        if entries:
            assert entries["location"] == WEIGHTS_FILE
            found[tensor.name] = int(entries["offset"]), int(entries["length"])
    return found


def test_all_graphs_read_the_same_bytes_of_one_file(exported: Path) -> None:
    first, *others = (places(load(exported, graph)) for graph in GRAPHS)
    assert all(other == first for other in others)
    numbers = 12 * 12 + 12 * 8 + 12 * 10 + 12 * 12 + 4 * 12
    assert sum(length for _, length in first.values()) == 4 * numbers
    assert all(offset % ALIGNMENT_BYTES == 0 for offset, _ in first.values())
    end = max(offset + length for offset, length in first.values())
    assert (exported / WEIGHTS_FILE).stat().st_size == end


@every_graph
def test_weights_are_named_after_the_layer_and_unchanged(
    exported: Path, weights: Weights, graph: GraphSpec
) -> None:
    found = {t.name: t for t in load(exported, graph, data=True).graph.initializer}
    for name, field in STATE_NAMES.items():
        array = getattr(weights, field)
        stored = found[name if array.ndim == 1 else f"{name}.T"]
        np.testing.assert_array_equal(numpy_helper.to_array(stored), array.T)


@every_graph
def test_the_sizes_of_the_layer_are_in_the_metadata(exported: Path, graph: GraphSpec) -> None:
    properties = {p.key: p.value for p in load(exported, graph).metadata_props}
    assert AttentionSpec.from_properties(properties) == AttentionSpec(12, 3, kdim=8, vdim=10)
    assert len(properties) == 4


@every_graph
def test_onnx_accepts_the_file(exported: Path, graph: GraphSpec) -> None:
    onnx.checker.check_model(exported / graph.file)


@every_graph
def test_no_file_tells_who_made_it_or_where(exported: Path, graph: GraphSpec) -> None:
    content = (exported / graph.file).read_bytes()
    assert not re.search(rb"\.py\b|site-packages|pkg\.torch|stack_trace|namespace", content)
    proto = load(exported, graph)
    assert (proto.producer_name, proto.producer_version) == ("limelight", "")
    assert not any(node.metadata_props or node.doc_string for node in proto.graph.node)


def make_proto(**arrays: object) -> onnx.ModelProto:
    tensors = [numpy_helper.from_array(np.asarray(a), name) for name, a in arrays.items()]
    return onnx.helper.make_model(onnx.helper.make_graph([], "graph", [], [], tensors))


def test_a_tensor_that_is_no_weight_of_the_layer_is_refused(weights: Weights) -> None:
    proto = make_proto(scale=np.full((2, 3), 0.5, np.float32))
    with pytest.raises(VerificationError) as caught:
        name_weights(proto, weights)
    assert str(caught.value) == (
        "tensor 'scale' [2, 3] of the graph is not a weight of the layer, expected W_q.weight, "
        "W_q.bias, W_k.weight, W_k.bias, W_v.weight, W_v.bias, fc_out.weight, fc_out.bias alone"
    )


def test_equal_weights_keep_names_of_their_own() -> None:
    eye, zeros = np.eye(6, dtype=np.float32), np.zeros(6, np.float32)
    weights = Weights(AttentionSpec(6, 2), eye, zeros, eye, zeros, eye, zeros, eye, zeros)
    proto = make_proto(a=eye, b=zeros, c=eye, d=zeros)
    name_weights(proto, weights)
    names = [tensor.name for tensor in proto.graph.initializer]
    assert names == ["W_q.weight.T", "W_q.bias", "W_k.weight.T", "W_k.bias"]


def test_graphs_that_disagree_on_a_weight_are_refused(tmp_path: Path) -> None:
    protos = {
        f"{number}.onnx": make_proto(W=np.array([1, 2, number], np.float32)) for number in (3, 4)
    }
    with pytest.raises(ValueError, match=r"^the graphs disagree on weight 'W'$"):
        write_graphs(protos, tmp_path)


def test_single_numbers_and_sizes_stay_in_the_graph(tmp_path: Path) -> None:
    proto = make_proto(scale=np.float32(2), sizes=np.array([3, 4]), W=np.ones(3, np.float32))
    write_graphs({"a.onnx": proto}, tmp_path)
    stored = onnx.load(tmp_path / "a.onnx", load_external_data=False).graph.initializer
    outside = [t.name for t in stored if t.data_location == TensorProto.EXTERNAL]
    assert outside == ["W"]
