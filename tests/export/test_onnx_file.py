"""The files: one copy of the weights, and no word of how or where they were made."""

import re
from pathlib import Path

import numpy as np
import onnx
import onnx_ir
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, numpy_helper

from export.errors import VerificationError
from export.marks import MARKS
from export.onnx_file import (
    ALIGNMENT_BYTES,
    lay_out_weights,
    read_weights,
    refer_to_weights,
    write_weights,
)
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


@pytest.mark.parametrize("spec", [AttentionSpec(6, 3), AttentionSpec(12, 3, kdim=8, vdim=10)])
def test_weights_come_back_from_their_file(spec: AttentionSpec, tmp_path: Path) -> None:
    weights = Weights.random(spec, seed=2)
    write_weights(weights, tmp_path / WEIGHTS_FILE)
    read = read_weights(tmp_path / WEIGHTS_FILE, spec)
    for field in STATE_NAMES.values():
        np.testing.assert_array_equal(getattr(read, field), getattr(weights, field))


@given(st.integers(1, 40), st.integers(1, 9), st.integers(1, 70), st.integers(1, 70))
def test_places_never_overlap_and_start_on_a_page(
    d_k: int, heads: int, kdim: int, vdim: int
) -> None:
    end = 0
    for place in lay_out_weights(AttentionSpec(d_k * heads, heads, kdim, vdim)).values():
        assert end <= place.offset < end + ALIGNMENT_BYTES
        assert place.offset % ALIGNMENT_BYTES == 0
        end = place.offset + place.size_bytes


def make_model(**arrays: np.ndarray) -> onnx_ir.Model:
    tensors = [numpy_helper.from_array(array, name) for name, array in arrays.items()]
    graph = onnx.helper.make_graph([], "graph", [], [], tensors)
    return onnx_ir.from_proto(onnx.helper.make_model(graph))


def mark(name: str, *shape: int) -> np.ndarray:
    return np.full(shape, MARKS[name], np.float32)


@pytest.mark.parametrize(
    "array",
    [
        pytest.param(np.full((2, 3), 0.5, np.float32), id="no mark"),
        pytest.param(mark("W_q.weight", 2, 3), id="the mark of another size"),
        pytest.param(mark("W_q.weight", 12, 12) * 2, id="twice a mark"),
        pytest.param(np.arange(144, dtype=np.float32).reshape(12, 12), id="many numbers"),
    ],
)
def test_a_tensor_that_is_no_weight_of_the_layer_is_refused(
    array: np.ndarray, weights: Weights
) -> None:
    with pytest.raises(VerificationError) as caught:
        refer_to_weights(make_model(scale=array), weights.spec)
    assert str(caught.value) == (
        f"tensor 'scale' {list(array.shape)} of the graph is not a weight of the layer, expected "
        "W_q.weight, W_q.bias, W_k.weight, W_k.bias, W_v.weight, W_v.bias, fc_out.weight, "
        "fc_out.bias alone"
    )


def test_single_numbers_and_sizes_stay_in_the_graph(weights: Weights) -> None:
    model = make_model(
        scale=np.array(2, np.float32), sizes=np.array([3, 4]), W=mark("W_k.weight", 8, 12)
    )
    assert refer_to_weights(model, weights.spec) == {"W": "W_k.weight.T"}
    stored = onnx_ir.to_proto(model).graph.initializer
    outside = [t.name for t in stored if t.data_location == TensorProto.EXTERNAL]
    assert outside == ["W"]
