"""The numbers of a layer between torch, checkpoints and files."""

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch

from model.attention import MultiHeadAttention
from model.contract import AttentionSpec
from model.weights import STATE_NAMES, Weights, expected_shapes

SPEC = AttentionSpec(12, 3, kdim=8, vdim=10)
WEIGHTS = Weights.random(SPEC, 7)


def test_the_same_seed_draws_the_same_numbers_and_another_draws_others() -> None:
    first, second, other = (Weights.random(SPEC, seed) for seed in (7, 7, 8))
    for name in expected_shapes(SPEC):
        assert np.array_equal(getattr(first, name), getattr(second, name))
        assert not np.array_equal(getattr(first, name), getattr(other, name))


def test_random_numbers_stay_within_the_bound_of_a_linear_layer() -> None:
    weights = Weights.random(SPEC, 7)
    for array, inputs in ((weights.W_q, 12), (weights.W_k, 8), (weights.W_v, 10)):
        assert array.dtype == np.float32
        assert 0.8 / inputs**0.5 < np.abs(array).max() <= 1 / inputs**0.5


@pytest.mark.parametrize(
    ("name", "shape", "message"),
    [
        ("W_q", (12, 8), "weight W_q has shape [12, 8], expected [12, 12]"),
        ("W_k", (8, 12), "weight W_k has shape [8, 12], expected [12, 8]"),
        ("b_v", (1, 12), "weight b_v has shape [1, 12], expected [12]"),
    ],
)
def test_a_weight_of_another_shape_is_named(
    name: str, shape: tuple[int, ...], message: str
) -> None:
    changes: dict[str, Any] = {name: np.zeros(shape, np.float32)}
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the text is compared in full
        dataclasses.replace(WEIGHTS, **changes)
    assert str(caught.value) == message


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_a_number_that_is_not_finite_is_refused(number: float) -> None:
    matrix = np.zeros((12, 12), np.float32)
    matrix[3, 4] = number
    with pytest.raises(ValueError, match=r"^weight fc_out holds NaN or an infinity$"):
        dataclasses.replace(WEIGHTS, fc_out=matrix)


def test_numbers_pass_through_the_module_unchanged() -> None:
    back = MultiHeadAttention.from_weights(WEIGHTS).to_weights()
    for name in expected_shapes(SPEC):
        assert np.array_equal(getattr(WEIGHTS, name), getattr(back, name))


def test_a_layer_without_biases_has_zeros_for_them() -> None:
    layer = MultiHeadAttention(12, 3, kdim=8, vdim=10, bias=False)
    weights = layer.to_weights()
    assert not any(getattr(weights, name).any() for name in ("b_q", "b_k", "b_v", "b_out"))
    assert np.array_equal(weights.W_k, layer.W_k.weight.detach().numpy())


def test_a_parametrized_weight_is_the_one_that_the_layer_computes_with() -> None:
    layer = MultiHeadAttention(12, 3)
    torch.nn.utils.parametrizations.orthogonal(layer.W_q)
    assert "W_q.weight" not in layer.state_dict()
    W_q = layer.to_weights().W_q
    np.testing.assert_allclose(W_q @ W_q.T, np.eye(12), atol=1e-6)


def test_weights_are_a_copy_that_training_does_not_change() -> None:
    layer = MultiHeadAttention(12, 3)
    weights = layer.to_weights()
    with torch.no_grad():
        layer.W_q.weight.zero_()
    assert weights.W_q.any()


def test_state_names_are_those_of_the_module() -> None:
    assert list(STATE_NAMES) == list(MultiHeadAttention(12, 3).state_dict())
