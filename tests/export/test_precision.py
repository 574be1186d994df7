"""float16: half the weights, close to float64 in every graph, with float32 at the door."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper
from onnx.reference import ReferenceEvaluator

from export.cases import Case, draw_questions
from export.errors import VerificationError
from export.hidings import Hiding, draw_tokens, graph_inputs
from export.module import export_module
from export.onnx_file import read_weights, write_weights
from export.runtime import open_graph
from export.verify import check_errors, largest_error
from export.version import verify_version
from model.attention import MultiHeadAttention
from model.contract import (
    BIAS,
    DECOMPOSED,
    FUSED_BIAS,
    FUSED_WEIGHTS,
    GRAPHS,
    NO_KEY_SCORE,
    WEIGHTS_FILE,
    AttentionSpec,
    GraphSpec,
)
from model.reference import attend
from model.weights import STATE_NAMES, Weights
from service.engine.loader import Loader
from service.engine.sizes import Limits
from service.inference import Inference

B, L, S = 5, 6, 7
SPEC = AttentionSpec(12, 3, kdim=8, vdim=10, precision="fp16")
HIDINGS = {"fused": ("none", "key_mask"), "fused_causal": ("causal_top_left",)}
LIMITS = Limits(256, 2**20, 2**30, 2**30)
FLOATS = (TensorProto.FLOAT, TensorProto.FLOAT16)

every_graph = pytest.mark.parametrize("graph", GRAPHS, ids=lambda graph: graph.name)
with_bias = pytest.mark.parametrize("graph", [DECOMPOSED, FUSED_BIAS, FUSED_WEIGHTS])


@pytest.fixture(scope="module", name="halved")
def export_halved(tmp_path_factory: pytest.TempPathFactory, weights: Weights) -> Path:
    """The layer of `exported` in float16: the directory of its version."""
    layer = MultiHeadAttention.from_weights(weights)
    models = tmp_path_factory.mktemp("models")
    return export_module(layer, models, name="small", precision="fp16")


def load(halved: Path, graph: GraphSpec) -> onnx.ModelProto:
    return onnx.load(halved / graph.file)


@every_graph
def test_tensors_at_the_door_stay_float32(halved: Path, graph: GraphSpec) -> None:
    found = load(halved, graph).graph
    kinds = {v.name: v.type.tensor_type.elem_type for v in (*found.input, *found.output)}
    assert kinds.pop("key_lengths", TensorProto.INT64) == TensorProto.INT64
    assert set(kinds.values()) == {TensorProto.FLOAT}


@every_graph
def test_weights_are_those_of_the_layer_rounded_to_float16(
    halved: Path, weights: Weights, graph: GraphSpec
) -> None:
    found = {t.name: t for t in load(halved, graph).graph.initializer}
    for name, field in STATE_NAMES.items():
        array = getattr(weights, field)
        stored = numpy_helper.to_array(found[name if array.ndim == 1 else f"{name}.T"])
        assert stored.dtype == np.float16
        np.testing.assert_array_equal(stored, array.T.astype(np.float16))


@every_graph
def test_scores_and_softmax_see_float32_but_where_flash_attends(
    halved: Path, graph: GraphSpec
) -> None:
    proto = onnx.shape_inference.infer_shapes(load(halved, graph))
    kinds = {v.name: v.type.tensor_type.elem_type for v in (*proto.graph.value_info,)}
    attending = [n for n in proto.graph.node if n.op_type in ("Softmax", "Attention")]
    assert len(attending) == 1
    wanted = TensorProto.FLOAT if BIAS in graph.inputs else TensorProto.FLOAT16
    inputs = [kinds[name] for name in attending[0].input if kinds.get(name) in FLOATS]
    assert set(inputs) == {wanted}


def test_the_file_of_weights_is_half_as_long(halved: Path) -> None:
    numbers = 12 * 12 + 12 * 8 + 12 * 10 + 12 * 12 + 4 * 12
    graph = onnx.load(halved / DECOMPOSED.file, load_external_data=False).graph
    lengths = [
        int(e.value) for t in graph.initializer for e in t.external_data if e.key == "length"
    ]
    assert sum(lengths) == 2 * numbers


@with_bias
def test_rows_that_see_no_key_are_uniform_and_other_hidden_keys_have_no_weight(
    halved: Path, weights: Weights, graph: GraphSpec
) -> None:
    tokens: dict[str, Any] = draw_tokens(np.random.default_rng(2), weights.spec, B, L, S)
    mask = np.ones((B, 1, L, S), bool)
    mask[:, :, 4] = False
    mask[:, :, 2, 5:] = False
    bias = np.where(mask, 0, -np.inf).astype(np.float32)
    bias[:, :, 4] = NO_KEY_SCORE
    answers = open_graph(halved / graph.file)(list(graph.outputs), tokens | {"bias": bias})
    for answer, wanted in zip(answers, attend(weights, **tokens, mask=mask), strict=False):
        np.testing.assert_allclose(answer, wanted, rtol=0, atol=1e-2)
    if len(answers) == 2:
        np.testing.assert_array_equal(answers[1][:, :, 4], np.float32(1 / S))
        assert not answers[1][:, :, 2, 5:].any()


def test_a_server_on_the_cpu_answers_with_the_bits_that_each_item_has_alone(
    halved: Path, weights: Weights
) -> None:
    models = [Loader("cpu", threads, LIMITS).load(halved) for threads in (1, 2)]
    tokens: dict[str, Any] = draw_tokens(np.random.default_rng(2), weights.spec, B, L, S)
    answers = [model.run(model.check(Inference(tokens))).tensors["output"] for model in models]
    np.testing.assert_allclose(answers[0], attend(weights, **tokens)[0], rtol=0, atol=1e-2)
    assert answers[0].tobytes() == answers[1].tobytes()
    for item in range(B):
        one = {name: array[item : item + 1] for name, array in tokens.items()}
        alone = models[0].run(models[0].check(Inference(one))).tensors["output"]
        assert alone.tobytes() == answers[0][item].tobytes()


def test_the_record_and_the_manifest_tell_the_precision_and_its_tolerance(halved: Path) -> None:
    record = json.loads((halved / "verification.json").read_text())
    manifest = json.loads((halved / "manifest.json").read_text())
    assert record["tolerance"] == 1e-2
    assert record["attention"] == manifest["attention"] == SPEC.to_properties()


def test_what_was_exported_is_verified_again_against_its_rounded_weights(halved: Path) -> None:
    assert 1e-9 < largest_error(verify_version(halved, "cpu")) < 1e-6


@every_graph
def test_the_graph_as_it_is_written_keeps_the_tolerance(
    halved: Path, weights: Weights, graph: GraphSpec
) -> None:
    """onnxruntime takes the casts out on the CPU; this evaluator rounds where the graph does."""
    evaluator = ReferenceEvaluator(load(halved, graph))
    for sizes, tokens, hiding in draw_questions(weights.spec, [(2, 5, 7), (3, 16, 9)]):
        if hiding.name not in HIDINGS.get(graph.name, (hiding.name,)):
            continue
        answers = evaluator.run(None, tokens | graph_inputs(graph, tokens, hiding))
        wanted = attend(
            weights,
            **tokens,
            mask=hiding.mask,
            key_mask=hiding.key_mask,
            bias=hiding.bias,
            causal=hiding.causal,
        )
        for answer, right in zip(answers, wanted, strict=False):
            assert 1e-5 < np.abs(answer - right).max() < 1e-2, (sizes, hiding.name)


def test_a_layer_is_a_version_of_its_model_in_either_precision(
    tmp_path: Path, weights: Weights
) -> None:
    layer = MultiHeadAttention.from_weights(weights)
    first = export_module(layer, tmp_path, name="small")
    second = export_module(layer, tmp_path, name="small", precision="fp16")
    assert (first, second) == (tmp_path / "small" / "1", tmp_path / "small" / "2")


def test_weights_come_back_from_their_file_as_float32(tmp_path: Path, weights: Weights) -> None:
    write_weights(replace(weights, spec=SPEC), tmp_path / WEIGHTS_FILE)
    read = read_weights(tmp_path / WEIGHTS_FILE, SPEC)
    for field in STATE_NAMES.values():
        array = getattr(read, field)
        assert array.dtype == np.float32
        np.testing.assert_array_equal(array, getattr(weights, field).astype(np.float16))


def test_a_weight_that_float16_does_not_hold_is_named(tmp_path: Path, weights: Weights) -> None:
    large = weights.W_v.copy()
    large[3, 4] = -70_000
    with pytest.raises(VerificationError) as caught:
        write_weights(replace(weights, spec=SPEC, W_v=large), tmp_path / WEIGHTS_FILE)
    assert str(caught.value) == (
        "weight W_v holds numbers up to 70000, and float16 ends at 65504; export the layer with "
        "--precision fp32"
    )


def test_an_error_beyond_the_tolerance_of_float16_is_told() -> None:
    case = Case((4, 1, 3), {}, Hiding("h"), {}, 1.0, "fp16")
    check_errors({"output": 0.01}, "graph 'x'", case)
    with pytest.raises(VerificationError) as caught:
        check_errors({"output": 0.011}, "graph 'x'", case)
    assert str(caught.value) == (
        "graph 'x': output differs from float64 by 0.011 of its scale with hiding 'h' at batch "
        "size 4, query length 1, key length 3, expected at most 0.01; either it computes something "
        "else than softmax(q k^T / sqrt(d_k)) v, or the weights are too large for float16"
    )
