"""Verification: what it says of a graph that computes something else."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from export.cases import Case, ExpectedCases, compute_cases
from export.errors import VerificationError
from export.hidings import SIZES, Hiding
from export.runtime import Run
from export.verify import check_errors, largest_error, verify_graph
from model.contract import BIAS, DECOMPOSED, AttentionSpec
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
    with closing(ExpectedCases(weights)) as cases:
        report = {"model": verify_graph(exact(weights), DECOMPOSED, cases)}
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
    assert 1e-8 < largest_error(report) < 1e-6


def test_a_graph_that_swaps_key_and_value_is_refused() -> None:
    square = Weights.random(AttentionSpec(12, 3), seed=1)
    with (
        closing(ExpectedCases(square)) as cases,
        pytest.raises(VerificationError, match=r"^graph 'model': output differs from float64 by"),
    ):
        verify_graph(swap_key_and_value(square), DECOMPOSED, cases)


def in_float32(weights: Weights) -> Run:
    """A graph that rounds after every step."""

    def split(tokens: Any) -> Any:
        return tokens.reshape(*tokens.shape[:2], weights.spec.num_heads, -1).swapaxes(1, 2)

    def run(_: list[str], feeds: dict[str, Any]) -> list[Any]:
        q = split(feeds["query"] @ weights.W_q.T + weights.b_q)
        k = split(feeds["key"] @ weights.W_k.T + weights.b_k)
        v = split(feeds["value"] @ weights.W_v.T + weights.b_v)
        scores = q @ k.swapaxes(-1, -2) / np.float32(weights.spec.d_k**0.5) + feeds[BIAS]
        exponentials = np.exp(scores - scores.max(-1, keepdims=True))
        attention = exponentials / exponentials.sum(-1, keepdims=True)
        mixed = (attention @ v).swapaxes(1, 2)
        joined = mixed.reshape(*mixed.shape[:2], -1)
        return [joined @ weights.fc_out.T + weights.b_out, attention]

    return run


def multiply(weights: Weights, **factors: float) -> Weights:
    """The layer with some of its arrays multiplied."""
    arrays = {name: getattr(weights, name) * np.float32(f) for name, f in factors.items()}
    return replace(weights, **arrays)


SQUARE = Weights.random(AttentionSpec(60, 5), seed=1)
LAYERS = {
    "as drawn": SQUARE,
    "outputs of 100": multiply(SQUARE, fc_out=100, b_out=100),
    "outputs of 10,000": multiply(SQUARE, W_v=100, b_v=100, fc_out=100, b_out=1e4),
    "outputs of 0.0001": multiply(SQUARE, fc_out=1e-4, b_out=1e-4),
    "scores of 100": multiply(SQUARE, W_q=10, b_q=10, W_k=10, b_k=10),
    "scores of 1000": multiply(SQUARE, W_q=30, b_q=30, W_k=30, b_k=30),
    "large biases": multiply(SQUARE, b_q=30, b_v=1000, b_out=1000),
    "no output": multiply(SQUARE, fc_out=0, b_out=0),
}
FAULTS: dict[str, Callable[[Weights], Weights]] = {
    "query and key swapped": lambda w: replace(w, W_q=w.W_k, b_q=w.b_k, W_k=w.W_q, b_k=w.b_q),
    "key and value swapped": lambda w: replace(w, W_k=w.W_v, b_k=w.b_v, W_v=w.W_k, b_v=w.b_k),
    "a query that is not turned": lambda w: replace(w, W_q=w.W_q.T),
    "a value that is not turned": lambda w: replace(w, W_v=w.W_v.T),
    "an output that is not turned": lambda w: replace(w, fc_out=w.fc_out.T),
    "scores divided by sqrt(d_model)": lambda w: multiply(w, W_q=5**-0.5, b_q=5**-0.5),
    "scores that are not divided": lambda w: multiply(w, W_q=12**0.5, b_q=12**0.5),
    "no bias of the query": lambda w: multiply(w, b_q=0),
    "no bias of the value": lambda w: multiply(w, b_v=0),
    "no bias of the output": lambda w: multiply(w, b_out=0),
}


@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_that_is_right_passes_whatever_the_size_of_its_numbers(layer: str) -> None:
    verify_graph(in_float32(LAYERS[layer]), DECOMPOSED, compute_cases(LAYERS[layer], SIZES))


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("layer", [name for name in LAYERS if name != "no output"])
def test_a_fault_is_found_whatever_the_size_of_its_numbers(layer: str, fault: str) -> None:
    wrong = FAULTS[fault](LAYERS[layer])
    with pytest.raises(VerificationError):
        verify_graph(in_float32(wrong), DECOMPOSED, compute_cases(LAYERS[layer], SIZES))


@pytest.mark.parametrize("name", ["b_q", "b_v", "b_out"])
def test_a_missing_bias_of_a_ten_thousandth_is_found(name: str) -> None:
    """That of the key is not: it is the same for all keys of a query, so no softmax tells it."""
    bias: Any = {name: np.full(60, 1e-4, np.float32)}
    layer = replace(SQUARE, **bias)
    with pytest.raises(VerificationError):
        verify_graph(
            in_float32(multiply(layer, **{name: 0})), DECOMPOSED, compute_cases(layer, SIZES)
        )
    without = in_float32(multiply(layer, b_k=0))
    verify_graph(without, DECOMPOSED, compute_cases(layer, SIZES[:5]))


@pytest.mark.parametrize(("error", "text"), [(0.25, "0.25"), (float("nan"), "nan")])
def test_an_error_is_told_with_where_it_was_found(error: float, text: str) -> None:
    with pytest.raises(VerificationError) as caught:
        check_errors(
            {"output": 1e-5, "attention_weights": error},
            "graph 'x'",
            Case((4, 1, 3), {}, Hiding("h"), {}, 0),
        )
    assert str(caught.value) == (
        f"graph 'x': attention_weights differs from float64 by {text} of its scale with hiding "
        "'h' at batch size 4, query length 1, key length 3, expected at most 1e-05; either it "
        "computes something else than softmax(q k^T / sqrt(d_k)) v, or the weights are too large "
        "for float32"
    )
