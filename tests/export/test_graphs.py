"""The graphs, run by onnxruntime as a server would, at sizes that were not traced."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from torch import Tensor

from export.graphs import trace_graph
from export.hidings import draw_tokens
from export.runtime import open_graph
from model.attention import MultiHeadAttention
from model.contract import (
    DECOMPOSED,
    FUSED,
    FUSED_BIAS,
    FUSED_CAUSAL,
    FUSED_WEIGHTS,
    GRAPHS,
    GraphSpec,
)
from model.reference import attend
from model.weights import Weights

B, H, L, S = 5, 3, 6, 7
TOKENS = {
    "query": ["batch_size", "query_length", 12],
    "key": ["batch_size", "key_length", 8],
    "value": ["batch_size", "key_length", 10],
}
BIAS = ["bias_batch_size", "bias_num_heads", "query_length", "key_length"]
OUTPUT = ["batch_size", "query_length", 12]
WEIGHTS = ["batch_size", 3, "query_length", "key_length"]
SHAPES = {
    DECOMPOSED: TOKENS
    | {"bias": ["bias_batch_size", "bias_num_heads", "bias_query_length", "key_length"]}
    | {"output": OUTPUT, "attention_weights": WEIGHTS},
    FUSED_BIAS: TOKENS | {"bias": BIAS, "output": OUTPUT},
    FUSED_WEIGHTS: TOKENS | {"bias": BIAS, "output": OUTPUT, "attention_weights": WEIGHTS},
    FUSED: TOKENS | {"key_lengths": ["batch_size"], "output": OUTPUT},
    FUSED_CAUSAL: TOKENS | {"output": OUTPUT},
}

with_bias = pytest.mark.parametrize("graph", [DECOMPOSED, FUSED_BIAS, FUSED_WEIGHTS])
every_graph = pytest.mark.parametrize("graph", GRAPHS, ids=lambda graph: graph.name)


def load(exported: Path, graph: GraphSpec) -> onnx.ModelProto:
    return onnx.load(exported / graph.file, load_external_data=False)


@every_graph
def test_inputs_and_outputs_are_those_of_the_contract_with_free_axes(
    exported: Path, graph: GraphSpec
) -> None:
    found = load(exported, graph).graph
    assert tuple(value.name for value in found.input) == graph.inputs
    assert tuple(value.name for value in found.output) == graph.outputs
    shapes = {
        value.name: [d.dim_param or d.dim_value for d in value.type.tensor_type.shape.dim]
        for value in (*found.input, *found.output)
    }
    assert shapes == SHAPES[graph]


@every_graph
def test_the_opset_is_one_that_onnxruntime_has_kernels_for(
    exported: Path, graph: GraphSpec
) -> None:
    proto = load(exported, graph)
    operators = [node.op_type for node in proto.graph.node]
    assert {(o.domain, o.version) for o in proto.opset_import} == {
        ("", 18 if graph is DECOMPOSED else 24)
    }
    assert operators.count("Attention") == (0 if graph is DECOMPOSED else 1)
    assert len(operators) < (30 if graph is DECOMPOSED else 10)


@with_bias
@pytest.mark.parametrize("heads", [1, H])
@pytest.mark.parametrize("batch_size", [1, B])
def test_key_and_value_are_told_apart_under_every_bias(
    exported: Path, weights: Weights, graph: GraphSpec, heads: int, batch_size: int
) -> None:
    generator = np.random.default_rng(2)
    tokens: dict[str, Any] = draw_tokens(generator, weights.spec, B, L, S)
    bias = generator.standard_normal((batch_size, heads, L, S), np.float32)
    bias[0, 0, 2, 3:] = -np.inf
    answers = open_graph(exported / graph.file)(list(graph.outputs), tokens | {"bias": bias})
    expected = attend(weights, **tokens, bias=bias)
    for answer, wanted in zip(answers, expected, strict=False):
        np.testing.assert_allclose(answer, wanted, atol=1e-6)


def test_the_portable_graph_takes_one_row_of_bias_for_all_queries(
    exported: Path, weights: Weights
) -> None:
    generator = np.random.default_rng(2)
    tokens: dict[str, Any] = draw_tokens(generator, weights.spec, B, L, S)
    bias = generator.standard_normal((B, 1, 1, S), np.float32)
    answers = open_graph(exported / DECOMPOSED.file)(
        list(DECOMPOSED.outputs), tokens | {"bias": bias}
    )
    for answer, wanted in zip(answers, attend(weights, **tokens, bias=bias), strict=True):
        np.testing.assert_allclose(answer, wanted, atol=1e-6)


def test_key_lengths_hide_the_keys_behind_them(exported: Path, weights: Weights) -> None:
    tokens: dict[str, Any] = draw_tokens(np.random.default_rng(2), weights.spec, B, L, S)
    lengths = np.array([1, 7, 3, 6, 2])
    (output,) = open_graph(exported / FUSED.file)(["output"], tokens | {"key_lengths": lengths})
    expected, _ = attend(weights, **tokens, key_mask=np.arange(S) < lengths[:, None])
    np.testing.assert_allclose(output, expected, atol=1e-6)


@pytest.mark.parametrize(("length", "keys"), [(L, S), (S, L), (L, L)])
def test_the_causal_graph_is_aligned_at_the_first_key(
    exported: Path, weights: Weights, length: int, keys: int
) -> None:
    """onnxruntime has aligned it at the last one (issue 29020), and does so with key lengths."""
    tokens: dict[str, Any] = draw_tokens(np.random.default_rng(3), weights.spec, B, length, keys)
    (output,) = open_graph(exported / FUSED_CAUSAL.file)(["output"], tokens)
    expected, _ = attend(weights, **tokens, causal="top_left")
    np.testing.assert_allclose(output, expected, atol=1e-6)


class HalvedScores(MultiHeadAttention):
    """A layer with another scale."""

    def scaled_scores(self, query: Tensor, key: Tensor) -> Tensor:
        return super().scaled_scores(query, key) / 2


def test_a_layer_with_another_computation_gives_another_graph(weights: Weights) -> None:
    plain, changed = (
        trace_graph(kind.from_weights(weights), DECOMPOSED).graph
        for kind in (MultiHeadAttention, HalvedScores)
    )
    count = [sum(node.op_type == "Div" for node in graph.node) for graph in (plain, changed)]
    assert count[1] == count[0] + 1


def test_a_layer_in_training_mode_is_not_traced(weights: Weights) -> None:
    layer = MultiHeadAttention.from_weights(weights).train()
    with pytest.raises(ValueError, match=r"^the layer is in training mode, expected layer\.eval"):
        trace_graph(layer, FUSED)


def test_the_defaults_of_torch_do_not_leak_into_a_graph(weights: Weights) -> None:
    layer = MultiHeadAttention.from_weights(weights)
    torch.set_default_dtype(torch.float64)
    try:
        proto = trace_graph(layer, FUSED_BIAS)
    finally:
        torch.set_default_dtype(torch.float32)
    kinds = {value.type.tensor_type.elem_type for value in proto.graph.input}
    assert kinds == {onnx.TensorProto.FLOAT}
