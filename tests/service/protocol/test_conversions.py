"""What /v1 converts: other floats to FP32, masks of 0 and 1 to BOOL."""

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.errors import InvalidRequestError
from service.protocol.conversions import convert_floats, convert_mask

L, S = 5, 7


def test_float32_is_left_as_it_is() -> None:
    array, converted = np.ones((L, S), np.float32), dict[str, str]()
    assert convert_floats("query", array, converted) is array
    assert converted == {}


@pytest.mark.parametrize(("dtype", "name"), [("f8", "FP64"), ("f2", "FP16")])
def test_other_floats_are_converted_and_it_is_noted(dtype: str, name: str) -> None:
    array, converted = np.linspace(-1, 1, L * S).reshape(L, S).astype(dtype), dict[str, str]()
    found = convert_floats("value", array, converted)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, array.astype(np.float32))
    assert converted == {"value": name}


@given(st.integers(0, 2**16 - 1))
def test_every_float16_survives(bits: int) -> None:
    number = np.frombuffer(struct.pack("<H", bits), np.float16)
    np.testing.assert_array_equal(convert_floats("query", number, {}).astype(np.float16), number)


def test_a_finite_number_beyond_fp32_is_refused_with_its_position() -> None:
    array = np.zeros((L, S))
    array[3, 6] = -1e39
    with pytest.raises(InvalidRequestError) as caught:
        convert_floats("query", array, {})
    assert str(caught.value) == ("input 'query' holds -1e+39 at [3, 6], which FP32 cannot hold")


def test_a_bias_below_all_of_fp32_hides() -> None:
    array = np.array([np.finfo(np.float64).min, -1e39, 0.5])
    assert convert_floats("bias", array, {}).tolist() == [-np.inf, -np.inf, 0.5]
    with pytest.raises(InvalidRequestError):
        convert_floats("bias", -array, {})


def test_nan_and_infinities_stay() -> None:
    array = np.array([np.inf, -np.inf, np.nan])
    np.testing.assert_array_equal(convert_floats("query", array, {}), array.astype(np.float32))


@pytest.mark.parametrize("dtype", ["?", "i8", "u1"])
def test_what_is_no_float_is_left_to_the_contract(dtype: str) -> None:
    array = np.ones((L, S), dtype)
    assert convert_floats("query", array, {}) is array
    assert convert_mask("mask", array) is array


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_a_float_mask_of_zeros_and_ones_becomes_bool(dtype: str) -> None:
    mask = np.tril(np.ones((L, S), dtype))
    found = convert_mask("mask", mask)
    assert found.dtype == np.bool_
    np.testing.assert_array_equal(found, mask == 1)


@pytest.mark.parametrize(
    ("value", "shown"), [(0.5, "0.5"), (-np.inf, "-inf"), (np.nan, "nan"), (-1e9, "-1000000000.0")]
)
def test_additive_masks_are_sent_on_to_bias(value: float, shown: str) -> None:
    mask = np.ones((L, S))
    mask[4, 2] = value
    with pytest.raises(InvalidRequestError) as caught:
        convert_mask("mask", mask)
    assert str(caught.value) == (
        f"input 'mask' holds {shown} at [4, 2], expected 0 or 1; additive values go into 'bias'"
    )


def test_arrays_without_elements_or_axes_are_converted_too() -> None:
    assert convert_mask("mask", np.zeros((0, S))).shape == (0, S)
    assert convert_mask("mask", np.array(1.0)).shape == ()
    assert convert_floats("bias", np.zeros((0, S)), {}).dtype == np.float32
