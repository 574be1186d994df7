"""Faults of exporters: graphs that freeze a size, lose a mask, or differ from one another."""

import ast
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor

from export.errors import VerificationError
from export.verify import verify_layer
from model.attention import MultiHeadAttention
from model.contract import (
    BIAS,
    DECOMPOSED,
    FUSED,
    FUSED_BIAS,
    FUSED_CAUSAL,
    FUSED_WEIGHTS,
    GRAPHS,
    KEY_LENGTHS,
    NO_KEY_SCORE,
    AttentionSpec,
    GraphSpec,
)
from model.weights import Weights
from service.engine.directories import DEMO as DEMO_DIRECTORY
from service.engine.session import Session, load_runtime, open_session
from tests.integration.demo import DEMO, Arrays, D, H, draw_tokens, expect

ROOT: Final = Path(__file__).parents[2]
TOLERANCE: Final = 1e-5
WITH_BIAS: Final = (DECOMPOSED, FUSED_BIAS, FUSED_WEIGHTS)
FROZEN: Final = [(1, 1, 1), (3, 7, 5), (5, 16, 16), (2, 1, 9)]

every_graph = pytest.mark.parametrize("graph", GRAPHS, ids=lambda graph: graph.name)


@cache
def open_graph(graph: GraphSpec) -> Session:
    """A graph of the demo, with the optimisations that serve."""
    path = DEMO_DIRECTORY / "demo" / "1" / graph.file
    return open_session(load_runtime(), path, "cpu", 1)


def run(graph: GraphSpec, tokens: Arrays, hiding: Arrays) -> Arrays:
    """The outputs of a graph by name."""
    results = open_graph(graph).run(list(graph.outputs), tokens | hiding)
    return dict(zip(graph.outputs, results, strict=True))


def hide(visible: Any) -> Arrays:
    """The bias that stands for a mask: rows that see no key are uniform."""
    sees_any = visible.any(axis=-1, keepdims=True)
    hidden = np.where(sees_any, -np.inf, NO_KEY_SCORE)
    return {BIAS: np.where(visible, 0, hidden).astype(np.float32)}


def check_close(got: Arrays, wanted: Arrays) -> None:
    """Compare the outputs that a graph has."""
    for name, array in got.items():
        np.testing.assert_allclose(array, wanted[name], rtol=0, atol=TOLERANCE, err_msg=name)


@every_graph
@pytest.mark.parametrize("sizes", FROZEN, ids=str)
def test_no_graph_is_frozen_at_the_sizes_of_an_example(
    graph: GraphSpec, sizes: tuple[int, int, int]
) -> None:
    """pytorch/pytorch #122321, #120075, #99701, #99516, #148886, #152018, #170264;
    livekit/livekit-wakeword #39.
    """
    tokens, lengths = draw_tokens(*sizes), np.full(sizes[0], sizes[2])
    visible = np.ones((1, 1, *sizes[1:]), bool)
    if graph is FUSED:
        got = run(graph, tokens, {KEY_LENGTHS: lengths})
    elif graph is FUSED_CAUSAL:
        got, visible = run(graph, tokens, {}), np.tril(visible)
    else:
        got = run(graph, tokens, hide(visible))
    check_close(got, expect(tokens | {"mask": visible}))


@given(
    sizes=st.tuples(st.integers(1, 5), st.integers(1, 17), st.integers(1, 17)),
    heads=st.sampled_from([1, H]),
    density=st.sampled_from([0.0, 0.2, 0.5, 0.9]),
    seed=st.integers(0, 999),
)
@example(sizes=(4, 5, 7), heads=H, density=0.0, seed=0)
@settings(max_examples=150)
def test_every_graph_agrees_with_the_plain_one_under_any_mask(
    sizes: tuple[int, int, int], heads: int, density: float, seed: int
) -> None:
    """Fusions and fused operators differ where masks are not right-padded, or a row is empty.

    microsoft/onnxruntime #14363, #18945, #26262, #27992, #29020; microsoft/onnxscript #2479,
    #2654, #656.
    """
    batch_size, query_length, key_length = sizes
    shape = (batch_size, heads, query_length, key_length)
    visible = np.random.default_rng(seed).random(shape) < density
    tokens = draw_tokens(*sizes, seed=seed)
    right = expect(tokens | {"mask": visible})
    plain = run(DECOMPOSED, tokens, hide(visible))
    for graph in WITH_BIAS:
        got = run(graph, tokens, hide(visible))
        check_close(got, right)
        check_close(got, plain)


@given(
    sizes=st.tuples(st.integers(1, 5), st.integers(1, 9), st.integers(1, 17)), seed=st.integers(0)
)
@settings(max_examples=60)
def test_key_lengths_agree_with_the_plain_graph_under_padding(
    sizes: tuple[int, int, int], seed: int
) -> None:
    """microsoft/onnxruntime #14363, #18945."""
    batch_size, _, key_length = sizes
    lengths = np.random.default_rng(seed).integers(1, key_length + 1, batch_size)
    real = np.arange(key_length) < lengths[:, None]
    tokens = draw_tokens(*sizes)
    visible = np.broadcast_to(real[:, None, None], (batch_size, 1, sizes[1], key_length))
    got = run(FUSED, tokens, {KEY_LENGTHS: lengths})
    check_close(got, run(DECOMPOSED, tokens, hide(visible)))
    check_close(got, expect(tokens | {"key_mask": real}))


def test_masking_leaves_every_tensor_as_it_was() -> None:
    """A mutation in place would be dropped or changed on the way (pytorch/pytorch #120075)."""
    layer = MultiHeadAttention.from_weights(DEMO)
    tokens = [torch.from_numpy(array) for array in draw_tokens(2, 4, 5).values()]
    mask = torch.ones(2, 1, 4, 5).tril()
    given = [tensor.clone() for tensor in (*tokens, mask)]
    with torch.no_grad():
        layer(*tokens, mask)
    assert all(map(torch.equal, (*tokens, mask), given))


@pytest.mark.parametrize("file", ["model/attention.py", "export/graphs.py"])
def test_nothing_that_is_traced_works_in_place(file: str) -> None:
    """``masked_fill_`` and its like (pytorch/pytorch #120075)."""
    tree = ast.parse((ROOT / file).read_text())
    called = [
        node.func.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    ]
    assert called
    assert [name for name in called if name.endswith("_") and not name.endswith("__")] == []


class SoftCapped(MultiHeadAttention):
    """A layer that caps its scores, as some decoders do."""

    def scaled_scores(self, query: Tensor, key: Tensor) -> Tensor:
        return 5 * torch.tanh(super().scaled_scores(query, key) / 5)


class CappedAfterTheMask(MultiHeadAttention):
    """The same in the wrong order: what is hidden comes back as -5."""

    def mix(self, scores: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        return super().mix(5 * torch.tanh(scores / 5), value)


@pytest.mark.parametrize("kind", [SoftCapped, CappedAfterTheMask])
def test_a_layer_with_a_soft_cap_is_not_exported(kind: type[MultiHeadAttention]) -> None:
    """The served formula has none, in either order (onnx/onnx #7865, #7867)."""
    weights = Weights.random(AttentionSpec(D, H), seed=7)
    strong = Weights(
        weights.spec, **{n: getattr(weights, n) * 9 for n in ("W_q", "W_k", "b_q", "b_k")},
        **{n: getattr(weights, n) for n in ("W_v", "b_v", "fc_out", "b_out")},
    )  # fmt: skip
    verify_layer(MultiHeadAttention.from_weights(strong).eval(), strong)
    with pytest.raises(VerificationError, match=r"^the layer's forward: "):
        verify_layer(kind.from_weights(strong).eval(), strong)


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
def test_products_beyond_half_precision_stay_finite(kind: torch.dtype) -> None:
    """64 times 40 times 40 leaves FP16; the query is scaled first (pytorch/pytorch #60939)."""
    layer = MultiHeadAttention(64, 1).to(kind)
    query = torch.full((1, 1, 1, 64), 40, dtype=kind)
    key = torch.stack([torch.full((64,), 40, dtype=kind), torch.full((64,), 39, dtype=kind)])
    _, weights = layer.scaled_dot_product_attention(query, key[None, None], key[None, None])
    assert weights.flatten().tolist() == [1.0, 0.0]


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_a_row_that_sees_no_key_is_finite_and_uniform_in_every_precision(kind: torch.dtype) -> None:
    """-1e9 is -inf in FP16, and a row of it NaN (NVIDIA/apex #1052; facebookresearch/fairseq
    #3575).
    """
    layer = MultiHeadAttention(12, 3).to(kind)
    tokens = [torch.ones(2, length, 12, dtype=kind) for length in (4, 8, 8)]
    mask = torch.zeros(4, 8, dtype=torch.bool)
    _, weights = layer(*tokens, mask, return_weights=True)
    assert torch.equal(weights, torch.full_like(weights, 1 / 8))
