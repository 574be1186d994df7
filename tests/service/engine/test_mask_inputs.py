"""Masks, key masks and biases: which datatypes and shapes they have, and what they become."""

from typing import Any

import numpy as np
import pytest

from service.engine.mask_inputs import check_bias, check_key_mask, check_mask
from service.engine.sizes import Sizes
from service.errors import InvalidRequestError

B, H, L, S = 4, 3, 5, 7
SIZES = Sizes(B, H, L, S)
SHAPES = [
    *((b, h, q, S) for b in (1, B) for h in (1, H) for q in (1, L)),
    *((b, q, S) for b in (1, B) for q in (1, L)),
    (1, S),
    (L, S),
]
EXPECTED = "expected [4 or 1, 3 or 1, 5 or 1, 7], [4 or 1, 5 or 1, 7] or [5 or 1, 7]"


def draw(shape: tuple[int, ...]) -> Any:
    return np.random.default_rng(2).random(shape) < 0.6


def refuse_mask(array: Any, sizes: Sizes = SIZES) -> str:
    with pytest.raises(InvalidRequestError) as caught:
        check_mask(array, sizes)
    return str(caught.value)


def refuse_key_mask(array: Any) -> str:
    with pytest.raises(InvalidRequestError) as caught:
        check_key_mask(array, SIZES)
    return str(caught.value)


def widen(shape: tuple[int, ...]) -> tuple[int, ...]:
    return (shape[0], 1, *shape[1:]) if len(shape) == 3 else (1,) * (4 - len(shape)) + shape


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_shape_of_the_contract_gets_four_axes(shape: tuple[int, ...]) -> None:
    mask, bias = draw(shape), draw(shape).astype(np.float32)
    found_mask, found_bias = check_mask(mask, SIZES), check_bias(bias, SIZES)
    assert found_mask is not None
    assert found_bias is not None
    assert found_mask.shape == found_bias.shape == widen(shape)
    np.testing.assert_array_equal(found_mask.reshape(shape), mask)
    np.testing.assert_array_equal(found_bias.reshape(shape), bias)


def test_the_third_axis_is_the_batch_even_where_it_equals_the_heads() -> None:
    mask = draw((3, L, S))
    found = check_mask(mask, Sizes(3, 3, L, S))
    assert found is not None
    np.testing.assert_array_equal(found, mask[:, None])


@pytest.mark.parametrize(
    "shape",
    [(), (S,), (L, 1), (1, 1), (2, S), (L, S + 1), (2, L, S), (B, 2, S), (B, L, 1), (H, L, S),
     (B, 2, L, S), (2, H, L, S), (B, H, 2, S), (B, H, L, 1), (1, B, H, L, S), (0, S), (B, H, L, 0)],
    ids=str,
)  # fmt: skip
def test_other_shapes_are_refused(shape: tuple[int, ...]) -> None:
    said = f"has shape {list(shape)}, {EXPECTED}"
    assert refuse_mask(np.ones(shape, bool)) == f"input 'mask' {said}"
    with pytest.raises(InvalidRequestError) as caught:
        check_bias(np.ones(shape, np.float32), SIZES)
    assert str(caught.value) == f"input 'bias' {said}"


@pytest.mark.parametrize("length", [1, L])
def test_one_row_for_each_item_and_head_is_refused_with_the_reshape_that_mends_it(
    length: int,
) -> None:
    assert refuse_mask(np.ones((B * H, length, S), bool)) == (
        f"input 'mask' has shape [12, {length}, 7], one row for each item and head: reshape it to "
        f"[4, 3, {length}, 7]"
    )


@pytest.mark.parametrize("shape", [(B * H, L + 1, S), (B * H, L, S + 1)])
def test_a_reshape_that_would_not_fit_either_is_not_advised(shape: tuple[int, ...]) -> None:
    assert "reshape" not in refuse_mask(np.ones(shape, bool))


@pytest.mark.parametrize("shape", [(S, L), (B, S, L), (B, H, S, L)])
def test_swapped_axes_are_refused_with_the_cure(shape: tuple[int, ...]) -> None:
    assert refuse_mask(np.ones(shape, bool)) == (
        f"input 'mask' has shape {list(shape)}, its last two axes are [key_length, query_length]: "
        "swap them to [5, 7]"
    )


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u4", "i8", "u8"])
def test_integers_of_0_and_1_are_booleans(dtype: str) -> None:
    mask, key_mask = draw((L, S)), draw((B, S))
    found_mask, found_key_mask = (
        check_mask(mask.astype(dtype), SIZES),
        check_key_mask(key_mask.astype(dtype), SIZES),
    )
    assert found_mask is not None
    assert found_key_mask is not None
    assert found_mask.dtype == found_key_mask.dtype == np.bool_
    np.testing.assert_array_equal(found_mask[0, 0], mask)
    np.testing.assert_array_equal(found_key_mask, key_mask)


@pytest.mark.parametrize(("value", "dtype"), [(2, "i8"), (-1, "i4"), (255, "u1")])
def test_other_integers_are_refused_with_their_position(value: int, dtype: str) -> None:
    mask = np.ones((B, L, S), dtype)
    mask[2, 3, 4] = value
    assert refuse_mask(mask) == f"input 'mask' holds {value} at [2, 3, 4], expected 0 or 1"
    assert refuse_key_mask(np.full((B, S), value, dtype)) == (
        f"input 'key_mask' holds {value} at [0, 0], expected 0 or 1"
    )


@pytest.mark.parametrize(("dtype", "name"), [("f2", "FP16"), ("f4", "FP32"), ("f8", "FP64")])
def test_floats_are_sent_on_to_bias(dtype: str, name: str) -> None:
    said = (
        f"has datatype {name}, expected BOOL, or integers 0 and 1; additive values go into 'bias'"
    )
    assert refuse_mask(np.ones((L, S), dtype)) == f"input 'mask' {said}"
    assert refuse_key_mask(np.ones((B, S), dtype)) == f"input 'key_mask' {said}"


def test_other_datatypes_are_refused() -> None:
    assert refuse_mask(np.ones((L, S), "c8")) == (
        "input 'mask' has datatype complex64, expected BOOL"
    )


def test_a_mask_of_bytes_is_not_copied_whatever_stands_for_true() -> None:
    raw = np.frombuffer(bytes([0, 1, 2, 255, 0, 128, 7]), bool).reshape(1, S)
    found = check_mask(raw, SIZES)
    assert found is not None
    assert np.shares_memory(found, raw)


@pytest.mark.parametrize("shape", [(), (S,), (1, S), (B, 1), (B, L), (S, B), (B, 1, S), (B, S + 1)])
def test_a_key_mask_has_one_row_for_each_item(shape: tuple[int, ...]) -> None:
    assert refuse_key_mask(np.ones(shape, bool)) == (
        f"input 'key_mask' has shape {list(shape)}, expected [4, 7] ([batch_size, key_length])"
    )


@pytest.mark.parametrize(("dtype", "name"), [("?", "BOOL"), ("f8", "FP64"), ("i8", "INT64")])
def test_a_bias_is_float32(dtype: str, name: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        check_bias(np.ones((L, S), dtype), SIZES)
    assert str(caught.value) == (
        f"input 'bias' has datatype {name}, expected FP32: convert it before sending "
        "(/v1/attention converts FP16 and FP64 itself)"
    )


def test_what_is_absent_stays_absent() -> None:
    assert check_mask(None, SIZES) is None
    assert check_key_mask(None, SIZES) is None
    assert check_bias(None, SIZES) is None
