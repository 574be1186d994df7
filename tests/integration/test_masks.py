"""Masks, key masks and biases in every rank and at every door, against float64."""

from typing import Any

import httpx
import numpy as np
import pytest
from numpy.typing import NDArray

from tests.integration.demo import B, H, L, S, check_close, draw_bias, draw_mask, draw_tokens
from tests.integration.demo import expect as expect_outputs
from tests.integration.doors import DOORS, ask

TENSORS = draw_tokens()
KEY_MASK = np.arange(S) < np.array([7, 1, 4, 6])[:, None]
LOWEST = np.finfo(np.float32).min
SHAPES = [
    (B, H, L, S),
    (1, H, L, S),
    (B, 1, L, S),
    (B, H, 1, S),
    (1, 1, L, S),
    (1, H, 1, S),
    (B, 1, 1, S),
    (1, 1, 1, S),
    (B, L, S),
    (1, L, S),
    (B, 1, S),
    (1, 1, S),
    (L, S),
    (1, S),
]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("door", DOORS)
def test_a_mask_of_every_rank(client: httpx.Client, door: str, shape: tuple[int, ...]) -> None:
    tensors = TENSORS | {"mask": draw_mask(*shape)}
    check_close(ask(client, door, tensors), expect_outputs(tensors))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_bias_of_every_rank(client: httpx.Client, shape: tuple[int, ...]) -> None:
    tensors = TENSORS | {"bias": draw_bias(*shape)}
    check_close(ask(client, "v2-binary", tensors), expect_outputs(tensors))


@pytest.mark.parametrize("name", ["mask", "bias"])
def test_a_third_axis_is_the_batch_also_where_it_could_be_the_heads(
    client: httpx.Client, name: str
) -> None:
    """With B = H numpy's own rule would read [B, L, S] as [H, L, S], silently."""
    tokens = draw_tokens(batch_size=H)
    masks = {"mask": draw_mask(H, L, S), "bias": draw_bias(H, L, S)}
    tensors = tokens | {name: masks[name]}
    check_close(ask(client, "v2-json", tensors), expect_outputs(tensors))


@pytest.mark.parametrize("door", DOORS)
def test_a_key_mask(client: httpx.Client, door: str) -> None:
    tensors = TENSORS | {"key_mask": KEY_MASK}
    got = ask(client, door, tensors)
    check_close(got, expect_outputs(tensors))
    hidden = np.broadcast_to(~KEY_MASK[:, None, None, :], (B, H, L, S))
    assert (got["attention_weights"][hidden] == 0).all()


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int32", "int64"])
@pytest.mark.parametrize("door", ["v2-json", "v2-binary", "v1-npz", "v1-safetensors"])
def test_masks_may_be_booleans_or_integers_of_0_and_1(
    client: httpx.Client, door: str, dtype: str
) -> None:
    tensors = TENSORS | {"mask": draw_mask(B, 1, L, S), "key_mask": KEY_MASK | True}
    sent = tensors | {name: tensors[name].astype(dtype) for name in ("mask", "key_mask")}
    check_close(ask(client, door, sent), expect_outputs(tensors))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("door", ["v1-npz", "v1-safetensors", "v1-json"])
def test_the_friendly_door_takes_float_masks_of_0_and_1(
    client: httpx.Client, door: str, dtype: str
) -> None:
    sent = TENSORS | {"mask": np.tril(np.ones((L, S), dtype))}
    check_close(ask(client, door, sent), expect_outputs(TENSORS, causal=True))


@pytest.mark.parametrize("door", DOORS)
def test_true_means_that_the_key_is_seen(client: httpx.Client, door: str) -> None:
    only = np.zeros((L, S), bool)
    only[np.arange(L), [6, 0, 3, 2, 5]] = True
    weights = ask(client, door, TENSORS | {"mask": only})["attention_weights"]
    np.testing.assert_array_equal(weights, np.broadcast_to(only, weights.shape))


@pytest.mark.parametrize("hidden", [-np.inf, LOWEST, -1e30, -3e38], ids=str)
@pytest.mark.parametrize("door", ["v2-json", "v2-binary", "v1-npz", "v1-safetensors"])
def test_a_bias_of_minus_1e30_and_less_hides(
    client: httpx.Client, door: str, hidden: float
) -> None:
    visible = draw_mask(B, 1, L, S)
    bias = np.where(visible, draw_bias(B, 1, L, S), np.float32(hidden))
    got = ask(client, door, TENSORS | {"bias": bias})
    check_close(got, expect_outputs(TENSORS | {"bias": bias}))
    everywhere = np.broadcast_to(~visible, (B, H, L, S))
    assert (got["attention_weights"][everywhere] == 0).all()


@pytest.mark.parametrize("score", [-1e29, -1e9, 1e9], ids=str)
def test_a_large_finite_bias_is_only_added(client: httpx.Client, score: float) -> None:
    bias = np.zeros((L, S), np.float32)
    bias[1, 2] = score
    tensors = TENSORS | {"bias": bias}
    check_close(ask(client, "v2-binary", tensors), expect_outputs(tensors))


def test_a_bias_that_is_equally_low_on_a_whole_row_is_no_hiding(client: httpx.Client) -> None:
    tensors = TENSORS | {"bias": np.full((1, S), -1000, np.float32)}
    got = ask(client, "v2-binary", tensors)
    np.testing.assert_allclose(
        got["attention_weights"], expect_outputs(tensors)["attention_weights"], atol=2e-4, rtol=0
    )


EMPTY_ROW = draw_mask(B, H, L, S)
EMPTY_ROW[2, 1, 3] = False
NO_KEY = KEY_MASK & (np.arange(B) != 2)[:, None]
EMPTY: dict[str, dict[str, NDArray[Any]]] = {
    "mask": {"mask": EMPTY_ROW},
    "all-of-a-mask": {"mask": np.zeros((L, S), bool)},
    "key_mask": {"key_mask": NO_KEY},
    "mask-and-key_mask": {"mask": np.arange(S)[None] >= 5, "key_mask": KEY_MASK},
    "infinite-bias": {"bias": np.full((L, S), -np.inf, np.float32)},
    "lowest-bias": {"bias": np.full((L, S), LOWEST, np.float32)},
    "mixed-biases": {"bias": np.array([[-np.inf, LOWEST, -1e30, -2e30, -1e38, LOWEST, -np.inf]],
                                      np.float32)},
}  # fmt: skip


@pytest.mark.parametrize("case", EMPTY)
@pytest.mark.parametrize("door", ["v2-binary", "v1-safetensors"])
def test_a_row_that_sees_no_key_attends_to_all_equally(
    client: httpx.Client, door: str, case: str
) -> None:
    tensors = TENSORS | EMPTY[case]
    right = expect_outputs(tensors)
    uniform = (right["attention_weights"] == 1 / S).all(axis=-1)
    assert uniform.any()
    got = ask(client, door, tensors)
    check_close(got, right)
    rows = got["attention_weights"][uniform]
    assert (rows == rows[0, 0]).all(), "not exactly uniform"


def test_uniform_rows_are_exact_for_enormous_scores(client: httpx.Client) -> None:
    tensors = TENSORS | {"mask": np.zeros((L, S), bool)}
    tensors["query"] = tensors["query"] * np.float32(1e9)
    weights = ask(client, "v2-binary", tensors)["attention_weights"]
    assert (weights == weights[0, 0, 0, 0]).all()
    assert abs(weights[0, 0, 0, 0] - 1 / S) < 1e-7


def test_a_hidden_key_has_weight_0_whatever_its_score(client: httpx.Client) -> None:
    """The formula's fill of -1e9 would lose against scores below it."""
    tensors = {name: array.copy() for name, array in TENSORS.items()}
    tensors["query"] *= np.float32(1e6)
    tensors["key"] *= np.float32(1e6)
    tensors["mask"] = draw_mask(B, H, L, S)
    weights = ask(client, "v2-binary", tensors)["attention_weights"]
    assert (weights[~tensors["mask"]] == 0).all()
    np.testing.assert_allclose(weights.sum(axis=-1), 1, atol=1e-6)
