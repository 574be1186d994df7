"""Verification: what it says of a graph that computes something else."""

import numpy as np
import pytest

from export.errors import VerificationError
from export.verify import (
    Hiding,
    Run,
    check_errors,
    draw_hidings,
    draw_tokens,
    graph_inputs,
    largest_error,
    verify_graph,
)
from model.contract import BIAS, DECOMPOSED, FUSED, NO_KEY_SCORE, AttentionSpec
from model.reference import attend
from model.weights import Weights


def swap_key_and_value(weights: Weights) -> Run:
    """A graph with the fault that an exporter given one tensor twice would make."""
    return lambda _, feeds: [
        a.astype(np.float32)
        for a in attend(weights, feeds["query"], feeds["value"], feeds["key"], bias=feeds[BIAS])
    ]


def exact(weights: Weights) -> Run:
    return lambda _, feeds: [
        a.astype(np.float32)
        for a in attend(weights, feeds["query"], feeds["key"], feeds["value"], bias=feeds[BIAS])
    ]


def test_an_exact_graph_passes_with_the_rounding_of_float32_as_its_error(weights: Weights) -> None:
    report = {"model": verify_graph(exact(weights), DECOMPOSED, weights)}
    assert list(report["model"]) == [
        "none",
        "mask",
        "mask_per_head",
        "rows_without_keys",
        "key_mask",
        "bias",
        "causal_top_left",
        "causal_bottom_right",
    ]
    assert 1e-9 < largest_error(report) < 2e-7


def test_a_graph_that_swaps_key_and_value_is_refused() -> None:
    square = Weights.random(AttentionSpec(12, 3), seed=1)
    with pytest.raises(VerificationError, match=r"^graph 'model': output differs from float64 by"):
        verify_graph(swap_key_and_value(square), DECOMPOSED, square)


@pytest.mark.parametrize(("error", "text"), [(0.25, "0.25"), (float("nan"), "nan")])
def test_an_error_is_told_with_where_it_was_found(error: float, text: str) -> None:
    with pytest.raises(VerificationError) as caught:
        check_errors(
            {"output": 1e-5, "attention_weights": error}, "graph 'x'", Hiding("h"), (4, 1, 3)
        )
    assert str(caught.value) == (
        f"graph 'x': attention_weights differs from float64 by {text} with hiding 'h' at batch "
        "size 4, query length 1, key length 3, expected at most 1e-05; either it computes "
        "something else than softmax(q k^T / sqrt(d_k)) v, or the weights are too large for "
        "float32"
    )


def test_rows_without_keys_get_the_finite_bias_and_others_minus_infinity(weights: Weights) -> None:
    mask = np.array([[[[False, False, False], [True, False, True]]]])
    tokens = draw_tokens(np.random.default_rng(2), weights.spec, 1, 2, 3)
    bias = graph_inputs(DECOMPOSED, tokens, Hiding("mask", mask=mask))[BIAS]
    low = np.float32(NO_KEY_SCORE)
    np.testing.assert_array_equal(bias, [[[[low, low, low], [0, -np.inf, 0]]]])


def test_key_masks_become_lengths_for_the_graph_that_takes_them(weights: Weights) -> None:
    generator = np.random.default_rng(2)
    tokens = draw_tokens(generator, weights.spec, 2, 4, 5)
    for hiding in draw_hidings(generator, weights.spec, 2, 4, 5):
        if hiding.name == "key_mask":
            assert hiding.key_mask is not None
            lengths = graph_inputs(FUSED, tokens, hiding)["key_lengths"]
            expected = np.arange(5) < lengths[:, None]
            np.testing.assert_array_equal(hiding.key_mask, expected)
