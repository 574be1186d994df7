"""Where an ONNX file keeps its tensors, as the onnx library writes it."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from model.contract import GRAPHS, WEIGHTS_FILE
from service.engine.directories import DEMO
from service.engine.external_data import MAX_DEPTH, MESSAGES, OnnxFileError, find_locations

NUMBERS = np.arange(24, dtype=np.float32).reshape(4, 6)
KINDS: dict[str, Any] = {
    "Model": onnx.ModelProto, "Training": onnx.TrainingInfoProto, "Function": onnx.FunctionProto,
    "Graph": onnx.GraphProto, "Node": onnx.NodeProto, "Attribute": onnx.AttributeProto,
    "SparseTensor": onnx.SparseTensorProto, "Tensor": onnx.TensorProto,
    "Entry": onnx.StringStringEntryProto,
}  # fmt: skip


def keep_in(location: str, name: str = "w") -> TensorProto:
    """A tensor whose numbers lie in another file."""
    tensor = numpy_helper.from_array(NUMBERS, name)
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in (("location", location), ("offset", "0"), ("length", str(NUMBERS.nbytes))):
        entry = tensor.external_data.add()
        entry.key, entry.value = key, value
    return tensor


def make_graph(*tensors: TensorProto, nodes: Any = ()) -> onnx.GraphProto:
    return helper.make_graph(nodes, "g", [], [], initializer=tensors)


def make_model(*tensors: TensorProto, nodes: Any = ()) -> onnx.ModelProto:
    return helper.make_model(make_graph(*tensors, nodes=nodes))


def make_node(attribute: onnx.AttributeProto) -> onnx.NodeProto:
    node = helper.make_node("If", [], [])
    node.attribute.append(attribute)
    return node


@pytest.mark.parametrize("graph", GRAPHS, ids=lambda graph: graph.name)
def test_a_model_as_it_is_exported_keeps_them_in_one_file(graph: Any) -> None:
    content = (DEMO / "demo" / "1" / graph.file).read_bytes()
    assert find_locations(content) == {WEIGHTS_FILE}


def test_a_model_that_holds_its_tensors_has_no_other_file() -> None:
    model = make_model(numpy_helper.from_array(NUMBERS, "w"))
    assert find_locations(model.SerializeToString()) == set()


@pytest.mark.parametrize(
    "location", ["w.bin", "../x", "/etc/passwd", "sub/w.bin", "a\\b", "..", "", "\N{SNOWMAN}"]
)
def test_a_location_is_told_as_it_stands(location: str, tmp_path: Path) -> None:
    model = make_model(keep_in(location), keep_in("other.bin", "v"))
    path = tmp_path / "m.onnx"
    onnx.save(model, path)
    assert find_locations(path.read_bytes()) == {location, "other.bin"}


def test_what_the_library_itself_moves_out_is_found(tmp_path: Path) -> None:
    model = make_model(numpy_helper.from_array(NUMBERS, "w"))
    path = tmp_path / "m.onnx"
    onnx.save(model, path, save_as_external_data=True, location="moved.bin", size_threshold=0)
    assert find_locations(path.read_bytes()) == {"moved.bin"}


def hide_in_function(tensor: TensorProto) -> onnx.ModelProto:
    model = make_model()
    node = make_node(helper.make_attribute("value", tensor))
    model.functions.append(
        helper.make_function("d", "f", [], [], [node], [helper.make_opsetid("", 18)])
    )
    return model


def hide_in_default(tensor: TensorProto) -> onnx.ModelProto:
    model = make_model()
    function = helper.make_function("d", "f", [], [], [], [helper.make_opsetid("", 18)])
    function.attribute_proto.append(helper.make_attribute("value", tensor))
    model.functions.append(function)
    return model


def hide_in_training(tensor: TensorProto) -> onnx.ModelProto:
    model = make_model()
    model.training_info.add().algorithm.CopyFrom(make_graph(tensor))
    return model


def hide_sparse(tensor: TensorProto) -> onnx.ModelProto:
    model = make_model()
    model.graph.sparse_initializer.add().values.CopyFrom(tensor)
    return model


HIDING_PLACES = {
    "constant": lambda t: make_model(nodes=[make_node(helper.make_attribute("value", t))]),
    "constants": lambda t: make_model(nodes=[make_node(helper.make_attribute("value", [t]))]),
    "branch": lambda t: make_model(nodes=[make_node(helper.make_attribute("b", make_graph(t)))]),
    "branches": lambda t: make_model(
        nodes=[make_node(helper.make_attribute("b", [make_graph(t)]))]
    ),
    "function": hide_in_function,
    "default of a function": hide_in_default,
    "training": hide_in_training,
    "sparse": hide_sparse,
}


@pytest.mark.parametrize("place", HIDING_PLACES)
def test_a_tensor_is_found_wherever_a_model_may_hold_one(place: str) -> None:
    model = HIDING_PLACES[place](keep_in("../hidden"))
    assert find_locations(model.SerializeToString()) == {"../hidden"}


def test_the_table_leads_to_tensors_by_every_way_that_onnx_has() -> None:
    names = {kind.DESCRIPTOR.full_name: name for name, kind in KINDS.items()}
    for name in MESSAGES:
        ways = {
            field.number: names[field.message_type.full_name]
            for field in KINDS[name].DESCRIPTOR.fields
            if field.message_type
            and field.message_type.full_name in names
            and (field.name == "external_data" or names[field.message_type.full_name] != "Entry")
        }
        assert MESSAGES[name] == ways, name


def test_fields_of_later_versions_are_passed_over() -> None:
    later = bytes([0xF8, 0x07, 5, 0xF9, 0x07, *range(8), 0xFD, 0x07, *range(4), 0xFA, 0x07, 1, 0])
    content = make_model(keep_in("w.bin")).SerializeToString()
    assert find_locations(later + content + later) == {"w.bin"}


def test_a_model_in_parts_is_read_as_protobuf_joins_them() -> None:
    first, second = make_model(keep_in("a")), make_model(keep_in("b"))
    joined = first.SerializeToString() + second.SerializeToString()
    assert [t.name for t in onnx.ModelProto.FromString(joined).graph.initializer] == ["w", "w"]
    assert find_locations(joined) == {"a", "b"}


def test_of_an_entry_that_says_a_thing_twice_the_last_word_counts() -> None:
    tensor = keep_in("a")
    tensor.external_data[0].MergeFrom(onnx.StringStringEntryProto(value="b"))
    assert find_locations(make_model(tensor).SerializeToString()) == {"b"}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"no graph", "it is not protobuf"),
        (b"\x0b\x0c", "it is not protobuf"),
        (b"\x3a", "it is not protobuf, or was cut"),
        (b"\x3a\x05ab", "it is not protobuf, or was cut"),
        (b"\x39abc", "it is not protobuf, or was cut"),
        (b"\x08" + b"\xff" * 10, "it is not protobuf, or was cut"),
    ],
)
def test_what_is_no_model_is_refused(content: bytes, said: str) -> None:
    with pytest.raises(OnnxFileError) as caught:
        find_locations(content)
    assert str(caught.value) == said


def test_a_model_that_was_cut_is_read_where_protobuf_reads_it() -> None:
    content = make_model(keep_in("w.bin")).SerializeToString()
    cut = [content[:length] for length in range(len(content))]
    found = [read_or_none(part) for part in cut]
    assert found == [read_by_onnx(part) for part in cut]
    assert found.count(None) > len(content) // 2


def read_or_none(content: bytes) -> set[str] | None:
    try:
        return find_locations(content)
    except OnnxFileError:
        return None


def read_by_onnx(content: bytes) -> set[str] | None:
    """The same of a model whose tensors are all in one graph."""
    try:
        graph = onnx.ModelProto.FromString(content).graph
    except Exception:  # protobuf's own
        return None
    return {entry.value for t in graph.initializer for entry in t.external_data[:1]}


def test_nesting_is_bounded() -> None:
    content = make_graph(keep_in("deep")).SerializeToString()
    for _ in range(MAX_DEPTH):
        for field in (6, 5, 1):  # a graph in an attribute of a node of a graph
            content = wrap(field, content)
    with pytest.raises(OnnxFileError, match=r"^its messages are nested more than 100 deep$"):
        find_locations(wrap(7, content))


def wrap(field: int, content: bytes) -> bytes:
    return bytes([field << 3 | 2]) + write_varint(len(content)) + content


def write_varint(number: int) -> bytes:
    parts = []
    while number > 127:
        parts.append(number & 127 | 128)
        number >>= 7
    return bytes([*parts, number])


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    ours, theirs = read_or_none(content), read_by_onnx(content)
    assert ours is None or theirs is None or ours == theirs


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=9), max_size=3))
def test_all_locations_are_found(locations: list[str]) -> None:
    model = make_model(*(keep_in(location, str(n)) for n, location in enumerate(locations)))
    assert find_locations(model.SerializeToString()) == set(locations)
