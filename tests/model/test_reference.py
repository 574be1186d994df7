"""The oracle itself, against torch in float64 and against what the contract says of hiding."""

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import nn

from model.contract import AttentionSpec
from model.reference import attend
from model.weights import Weights

B, H, L, S, D, KDIM, VDIM = 2, 3, 4, 5, 12, 8, 10
SPEC = AttentionSpec(D, H, KDIM, VDIM)
WEIGHTS = Weights.random(SPEC, 1)

Tokens = dict[str, Any]


def draw_tokens(batch_size: int = B) -> Tokens:
    generator = np.random.default_rng(2)
    shapes = {"query": (L, D), "key": (S, KDIM), "value": (S, VDIM)}
    return {n: generator.standard_normal((batch_size, *s)) for n, s in shapes.items()}


def attend_all(**options: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    return attend(WEIGHTS, **draw_tokens(), **options)


def draw_mask(*shape: int) -> NDArray[np.bool_]:
    mask = np.random.default_rng(3).random(shape) < 0.6
    mask[..., 0] = True  # every row sees a key
    return mask


def test_it_equals_torch_in_float64() -> None:
    layer = nn.MultiheadAttention(D, H, kdim=KDIM, vdim=VDIM, batch_first=True).double()
    with torch.no_grad():
        for name, matrix in zip("qkv", (WEIGHTS.W_q, WEIGHTS.W_k, WEIGHTS.W_v), strict=True):
            getattr(layer, f"{name}_proj_weight").copy_(torch.from_numpy(matrix))
        biases = np.concatenate([WEIGHTS.b_q, WEIGHTS.b_k, WEIGHTS.b_v])
        layer.in_proj_bias.copy_(torch.from_numpy(biases))
        layer.out_proj.weight.copy_(torch.from_numpy(WEIGHTS.fc_out))
        layer.out_proj.bias.copy_(torch.from_numpy(WEIGHTS.b_out))
    mask, bias = draw_mask(B, H, L, S), np.random.default_rng(4).standard_normal((B, H, L, S))
    added = torch.from_numpy(np.where(mask, bias, -np.inf)).reshape(B * H, L, S)
    tokens = [torch.from_numpy(array) for array in draw_tokens().values()]
    wanted = layer(*tokens, attn_mask=added, average_attn_weights=False)
    for found, expected in zip(attend_all(mask=mask, bias=bias), wanted, strict=True):
        np.testing.assert_allclose(found, expected.detach().numpy(), atol=1e-14)


def test_weights_of_each_row_sum_to_one() -> None:
    _, weights = attend_all(mask=draw_mask(B, H, L, S))
    assert weights.shape == (B, H, L, S)
    np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-15)


@pytest.mark.parametrize("kind", [np.bool_, np.uint8, np.int64, np.float32])
def test_zero_hides_whatever_the_datatype_of_the_mask(kind: type) -> None:
    mask = draw_mask(B, H, L, S)
    _, weights = attend_all(mask=mask.astype(kind) * kind(1))
    assert not weights[~mask].any()
    assert weights[mask].all()


@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        pytest.param((L, S), (1, 1, L, S), id="two axes are queries and keys"),
        pytest.param((1, S), (1, 1, 1, S), id="one row for all queries"),
        pytest.param((B, L, S), (B, 1, L, S), id="the third axis is the batch"),
        pytest.param((B, 1, S), (B, 1, 1, S), id="one row for each item"),
        pytest.param((1, H, 1, S), (1, H, 1, S), id="one row for each head"),
    ],
)
@pytest.mark.parametrize("name", ["mask", "bias"])
def test_a_mask_of_fewer_axes_means_the_one_with_all_axes(
    name: str, shape: tuple[int, ...], axes: tuple[int, ...]
) -> None:
    given = draw_mask(*shape) * (1.0 if name == "mask" else -2.5)
    whole = np.broadcast_to(given.reshape(axes), (B, H, L, S))
    for found, expected in zip(
        attend_all(**{name: given}), attend_all(**{name: whole}), strict=True
    ):
        np.testing.assert_array_equal(found, expected)


def test_the_third_axis_is_the_batch_even_where_there_are_as_many_heads() -> None:
    mask = draw_mask(H, L, S)
    _, weights = attend(WEIGHTS, **draw_tokens(batch_size=H), mask=mask)
    hidden = np.broadcast_to(~mask[:, None], weights.shape)
    assert not weights[hidden].any()
    assert weights[~hidden].all()


def test_a_key_mask_hides_a_key_from_all_queries_of_its_item() -> None:
    key_mask = np.array([[1, 1, 1, 0, 0], [1, 0, 1, 1, 1]])
    _, weights = attend_all(key_mask=key_mask)
    assert np.array_equal(weights != 0, np.broadcast_to(key_mask[:, None, None], weights.shape))


def test_a_padded_item_equals_the_item_without_padding() -> None:
    tokens = draw_tokens()
    short = {name: a[:, :3] if name != "query" else a for name, a in tokens.items()}
    output, weights = attend_all(key_mask=np.tile([1, 1, 1, 0, 0], (B, 1)))
    expected, expected_weights = attend(WEIGHTS, **short)
    np.testing.assert_allclose(output, expected, atol=1e-15)
    np.testing.assert_allclose(weights[..., :3], expected_weights, atol=1e-15)


@pytest.mark.parametrize(
    ("causal", "visible"),
    [
        (True, np.tri(L, S)),
        ("top_left", np.tri(L, S)),
        ("bottom_right", np.tri(L, S, S - L)),
        (False, np.ones((L, S))),
    ],
)
def test_causal_lets_each_query_see_the_keys_up_to_its_own(
    causal: Any, visible: NDArray[Any]
) -> None:
    _, weights = attend_all(causal=causal)
    assert np.array_equal(weights != 0, np.broadcast_to(visible != 0, weights.shape))


def test_with_more_queries_than_keys_bottom_right_leaves_the_first_rows_without_keys() -> None:
    tokens = draw_tokens()
    tokens["key"], tokens["value"] = tokens["key"][:, :3], tokens["value"][:, :3]
    _, weights = attend(WEIGHTS, **tokens, causal="bottom_right")
    np.testing.assert_array_equal(weights[:, :, 0], 1 / 3)
    assert np.array_equal(weights[0, 0, 1:] != 0, np.tri(3) != 0)


@pytest.mark.parametrize("hiding", [-1e30, np.finfo(np.float32).min, -np.inf])
def test_a_bias_far_below_hides_like_a_mask(hiding: float) -> None:
    mask = draw_mask(B, 1, L, S)
    mask[0, 0, 2] = False
    for found, expected in zip(
        attend_all(bias=np.where(mask, 0.0, hiding)), attend_all(mask=mask), strict=True
    ):
        np.testing.assert_array_equal(found, expected)


def test_everything_that_hides_hides_together() -> None:
    mask, key_mask = np.ones((B, 1, L, S), bool), np.ones((B, S), bool)
    bias = np.zeros((B, H, L, S))
    mask[0, :, 3, 0], key_mask[0, 1], bias[0, :, 3, 2] = False, False, -np.inf
    _, weights = attend_all(mask=mask, key_mask=key_mask, bias=bias, causal=True)
    assert np.flatnonzero(weights[0, 1, 3]).tolist() == [3]
    assert np.flatnonzero(weights[1, 1, 3]).tolist() == [0, 1, 2, 3]


def test_a_row_that_sees_no_key_attends_to_all_keys_equally() -> None:
    mask = draw_mask(B, 1, L, S)
    mask[0, 0, 2] = False
    _, weights = attend_all(mask=mask, bias=np.full((1, S), 3.0))
    np.testing.assert_array_equal(weights[0, :, 2], 1 / S)


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_a_bias_that_is_not_a_number_spoils_its_own_row_alone(number: float) -> None:
    bias = np.zeros((B, H, L, S))
    bias[1, 2, 3, 4] = number
    _, weights = attend_all(bias=bias)
    assert np.argwhere(np.isnan(weights).any(-1)).tolist() == [[1, 2, 3]]


def test_an_absent_key_is_the_query_and_an_absent_value_is_the_key() -> None:
    weights, x = Weights.random(AttentionSpec(D, H), 1), draw_tokens()["query"]
    y = x[:, ::-1] * 2
    np.testing.assert_array_equal(attend(weights, x)[0], attend(weights, x, x, x)[0])
    np.testing.assert_array_equal(attend(weights, x, y)[0], attend(weights, x, y, y)[0])
