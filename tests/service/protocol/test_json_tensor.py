"""Lists of JSON numbers become exactly the arrays they say, or are refused with a position."""

import math
import struct
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from service.datatypes import DTYPES
from service.errors import InvalidRequestError
from service.protocol.json_tensor import convert_scalars, flatten_list

INTEGERS = [name for name, dtype in DTYPES.items() if dtype.kind in "iu"]
FLOATS = ["FP32", "FP64"]


def refuse_scalars(scalars: list[Any], datatype: str) -> str:
    with pytest.raises(InvalidRequestError) as caught:
        convert_scalars("bias", scalars, datatype)
    return str(caught.value)


def refuse_list(data: list[Any]) -> str:
    with pytest.raises(InvalidRequestError) as caught:
        flatten_list("query", data)
    return str(caught.value)


@given(arrays.arrays(np.int64, arrays.array_shapes(max_dims=4, max_side=4)))
def test_nesting_is_the_shape(array: Any) -> None:
    shape, scalars = flatten_list("query", array.tolist())
    assert shape == array.shape
    assert scalars == array.ravel().tolist()


@pytest.mark.parametrize(("data", "shape"), [([], (0,)), ([[], []], (2, 0)), ([[[]]], (1, 1, 0))])
def test_empty_lists_have_a_shape(data: list[Any], shape: tuple[int, ...]) -> None:
    assert flatten_list("query", data) == (shape, [])


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        ([[1, 2], [3]], "has lists of 1 and of 2 elements beside each other at depth 1, "
         "expected one length"),
        ([[[1], [2]], [[3], [4, 5]]], "has lists of 1 and of 2 elements beside each other at "
         "depth 2, expected one length"),
        ([[], [1]], "has lists of 0 and of 1 elements beside each other at depth 1, "
         "expected one length"),
        ([[1], 2], "has numbers beside lists, expected lists of one depth"),
        ([[1], None], "has numbers beside lists, expected lists of one depth"),
        ([[[1]], [2]], "has numbers beside lists, expected lists of one depth"),
    ],
)  # fmt: skip
def test_ragged_lists_are_refused(data: list[Any], fault: str) -> None:
    assert refuse_list(data) == f"input 'query' {fault}"


def test_a_list_after_a_number_is_left_to_the_check_of_the_numbers() -> None:
    assert flatten_list("query", [1, [2]]) == ((2,), [1, [2]])
    assert refuse_scalars([1, [2]], "FP32") == (
        "input 'bias' holds a list at element 1, expected numbers for FP32"
    )


def test_deep_lists_are_refused() -> None:
    data: list[Any] = [1]
    for _ in range(31):
        data = [data]
    assert flatten_list("query", data) == ((1,) * 32, [1])
    assert refuse_list([data]) == (
        "input 'query' is nested more than 32 lists deep, expected at most 4"
    )


@given(st.integers(0, 2**32 - 1))
def test_every_finite_float32_survives_json_bit_for_bit(bits: int) -> None:
    number = np.frombuffer(struct.pack("<I", bits), np.float32)
    assume(np.isfinite(number).all())
    scalars = orjson.loads(orjson.dumps(number, option=orjson.OPT_SERIALIZE_NUMPY))
    assert convert_scalars("bias", scalars, "FP32").tobytes() == number.tobytes()


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_finite_float64_survives_json_bit_for_bit(number: float) -> None:
    scalars = orjson.loads(orjson.dumps([number]))
    found = convert_scalars("bias", scalars, "FP64")
    assert found.tobytes() == struct.pack("<d", number)


@pytest.mark.parametrize("datatype", INTEGERS)
@given(data=st.data())
def test_every_whole_number_in_range_survives(datatype: str, data: st.DataObject) -> None:
    numbers = data.draw(st.lists(arrays.from_dtype(DTYPES[datatype]).map(int)))
    found = convert_scalars("mask", numbers, datatype)
    assert found.dtype == DTYPES[datatype]
    assert found.tolist() == numbers


@pytest.mark.parametrize("datatype", INTEGERS)
@pytest.mark.parametrize("beyond", [2**64, -(2**63) - 1, 10**400])
def test_a_whole_number_out_of_range_is_refused(datatype: str, beyond: int) -> None:
    info: Any = np.iinfo(DTYPES[datatype].type)
    shown = str(beyond) if abs(beyond) < 2**65 else f"1{'0' * 60}..."
    assert refuse_scalars([0, 1, beyond], datatype) == (
        f"input 'bias' holds {shown} at element 2, which {datatype} cannot hold: expected "
        f"{info.min} to {info.max}"
    )


@pytest.mark.parametrize(
    ("value", "came"),
    [
        (None, "null"),
        ("1", "a string"),
        (True, "a boolean"),
        (1.0, "the number 1.0"),
        (1.9, "the number 1.9"),
        (math.nan, "the number nan"),
        ([1], "a list"),
        ({}, "an object"),
    ],
)
def test_integers_take_whole_numbers_alone(value: object, came: str) -> None:
    assert refuse_scalars([0, value], "INT64") == (
        f"input 'bias' holds {came} at element 1, expected whole numbers for INT64"
    )


@pytest.mark.parametrize("datatype", FLOATS)
@pytest.mark.parametrize(
    ("value", "came"),
    [(None, "null"), ("1.5", "a string"), (True, "a boolean"), ([1], "a list"), ({}, "an object")],
)
def test_floats_take_numbers_alone(datatype: str, value: object, came: str) -> None:
    assert refuse_scalars([0.5, 2, value], datatype) == (
        f"input 'bias' holds {came} at element 2, expected numbers for {datatype}"
    )


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (1e39, "1e+39"),
        (3.5e38, "3.5e+38"),
        (10**39, "a number of 40 digits"),
        (10**400, "a number of 401 digits"),
    ],
)
def test_a_number_that_float32_would_make_infinite_is_refused(value: float, shown: str) -> None:
    assert refuse_scalars([0, value], "FP32") == (
        f"input 'bias' holds {shown} at element 1, which FP32 cannot hold"
    )


def test_a_bias_that_float32_would_make_minus_infinity_hides() -> None:
    assert convert_scalars("bias", [-3.5e38, 1], "FP32").tolist() == [-math.inf, 1]
    with pytest.raises(InvalidRequestError):
        convert_scalars("query", [-3.5e38, 1], "FP32")


def test_an_integer_beyond_float64_is_refused() -> None:
    assert refuse_scalars([math.inf, 10**309], "FP64") == (
        "input 'bias' holds a number of 310 digits at element 1, which FP64 cannot hold"
    )


@pytest.mark.parametrize("datatype", FLOATS)
def test_whole_numbers_beyond_64_bits_become_floats(datatype: str) -> None:
    assert convert_scalars("bias", [2**70, -(2**64)], datatype).tolist() == [2.0**70, -(2.0**64)]


@pytest.mark.parametrize("datatype", FLOATS)
def test_tokens_that_the_parser_took_stay_what_they_are(datatype: str) -> None:
    found = convert_scalars("bias", [math.inf, -math.inf, math.nan], datatype)
    np.testing.assert_array_equal(found, [np.inf, -np.inf, np.nan])


def test_numbers_too_small_for_float32_become_zero() -> None:
    assert convert_scalars("bias", [1e-60, 1e-45], "FP32").tolist() == [0, 2.0**-149]


def test_booleans_have_four_spellings() -> None:
    found = convert_scalars("mask", [True, False, 1, 0], "BOOL")
    assert found.dtype == np.bool_
    assert found.tolist() == [True, False, True, False]


@pytest.mark.parametrize(
    ("value", "came"),
    [(2, "2"), (-1, "-1"), (None, "null"), ("false", "a string"), (1.0, "the number 1.0"),
     (10**400, f"1{'0' * 60}..."), ([], "a list")],
)  # fmt: skip
def test_other_booleans_are_refused(value: object, came: str) -> None:
    assert refuse_scalars([True, 0, value], "BOOL") == (
        f"input 'bias' holds {came} at element 2, expected true, false, 1 or 0"
    )


def test_fp16_has_no_json_form() -> None:
    assert refuse_scalars([1], "FP16") == (
        "input 'bias' has datatype FP16, which has no JSON form; send binary data, or FP32"
    )


@pytest.mark.parametrize("datatype", [name for name in DTYPES if name != "FP16"])
def test_no_scalars_make_an_empty_array_of_the_datatype(datatype: str) -> None:
    found = convert_scalars("mask", [], datatype)
    assert (found.dtype, found.shape) == (DTYPES[datatype], (0,))
