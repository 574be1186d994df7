"""The inputs of a V2 request: JSON data and binary data, and every way to get them wrong."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from service.datatypes import DTYPES, name_datatype
from service.errors import InvalidRequestError, NotOfferedError
from service.protocol.v2_inputs import read_inputs

NOTHING = memoryview(b"")
NAMES = ["query", "key", "value", "mask", "key_mask", "bias"]
ARRAYS = st.sampled_from(list(DTYPES.values())).flatmap(
    lambda dtype: arrays.arrays(dtype, arrays.array_shapes(min_dims=0, min_side=0, max_side=4))
)


def describe(name: str, array: Any, **members: Any) -> dict[str, Any]:
    shape, datatype = list(array.shape), name_datatype(array)
    return {"name": name, "shape": shape, "datatype": datatype, **members}


def describe_binary(name: str, array: Any) -> dict[str, Any]:
    return describe(name, array, parameters={"binary_data_size": array.nbytes})


def query(**members: Any) -> dict[str, Any]:
    given = {"name": "query", "shape": [2, 3], "datatype": "FP32", "data": [1, 2, 3, 4, 5, 6]}
    return {"inputs": [{n: v for n, v in (given | members).items() if v is not ...}]}


def refuse(root: dict[str, Any], binary: bytes = b"") -> str:
    with pytest.raises(InvalidRequestError) as caught:
        read_inputs(root, memoryview(binary))
    return str(caught.value)


@given(st.dictionaries(st.sampled_from(NAMES), ARRAYS, max_size=6))
def test_binary_inputs_come_back_in_their_order(tensors: dict[str, Any]) -> None:
    root = {"inputs": [describe_binary(name, array) for name, array in tensors.items()]}
    found = read_inputs(root, memoryview(b"".join(a.tobytes() for a in tensors.values())))
    assert list(found) == list(tensors)
    for name, array in tensors.items():
        assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape)
        assert found[name].tobytes() == array.tobytes()


@given(
    st.sampled_from([name for name in DTYPES if name != "FP16"]).flatmap(
        lambda name: arrays.arrays(
            DTYPES[name],
            arrays.array_shapes(max_side=4),
            elements=arrays.from_dtype(DTYPES[name], allow_nan=False, allow_infinity=False),
        )
    ),
    st.booleans(),
)
def test_json_inputs_come_back_whether_flat_or_nested(array: Any, flat: bool) -> None:
    data = array.ravel().tolist() if flat else array.tolist()
    found = read_inputs({"inputs": [describe("bias", array, data=data)]}, NOTHING)["bias"]
    assert (found.dtype, found.shape) == (array.dtype, array.shape)
    assert found.tobytes() == array.tobytes()


def test_binary_inputs_are_views_of_the_body() -> None:
    body = b"{json}" + np.arange(6, dtype=np.float32).tobytes()
    root = query(data=..., parameters={"binary_data_size": 24})
    found = read_inputs(root, memoryview(body)[6:])["query"]
    assert np.shares_memory(found, np.frombuffer(body, np.uint8))
    assert not found.flags.writeable
    assert found.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_json_and_binary_inputs_mix() -> None:
    mask = np.array([[True, False, True]])
    bias = np.array([[0.5, 1.5, 2.5]], np.float32)
    entries = [
        describe_binary("mask", mask),
        query()["inputs"][0],
        describe_binary("bias", bias),
    ]
    found = read_inputs({"inputs": entries}, memoryview(mask.tobytes() + bias.tobytes()))
    np.testing.assert_array_equal(found["mask"], mask)
    np.testing.assert_array_equal(found["bias"], bias)
    assert found["query"].tolist() == [[1, 2, 3], [4, 5, 6]]


def test_nesting_other_than_the_shape_is_read_row_by_row() -> None:
    found = read_inputs(query(data=[[1, 2], [3, 4], [5, 6]]), NOTHING)["query"]
    assert found.tolist() == [[1, 2, 3], [4, 5, 6]]


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({"data": ...}, "input 'query' has neither 'data' nor parameter 'binary_data_size', "
         "expected one of them"),
        ({"parameters": {"binary_data_size": 24}}, "input 'query' has both 'data' and parameter "
         "'binary_data_size', expected one of them"),
        ({"data": None}, "'data' of input 'query' is null, expected a list"),
        ({"data": "1"}, "'data' of input 'query' is a string, expected a list"),
        ({"data": [1, 2, 3]}, "input 'query' has 3 elements, expected 6 for shape [2, 3]"),
        ({"data": [[1, 2, 3], [4, 5]]}, "input 'query' has lists of 2 and of 3 elements beside "
         "each other at depth 1, expected one length"),
        ({"data": [1, 2, 3, 4, 5, None]}, "input 'query' holds null at element 5, expected "
         "numbers for FP32"),
        ({"datatype": "fp32"}, 'input \'query\' has datatype "fp32", expected one of BOOL, UINT8, '
         "UINT16, UINT32, UINT64, INT8, INT16, INT32, INT64, FP16, FP32, FP64"),
        ({"datatype": ...}, "input 'query' has datatype null, expected one of BOOL, UINT8, "
         "UINT16, UINT32, UINT64, INT8, INT16, INT32, INT64, FP16, FP32, FP64"),
        ({"datatype": ["FP32"]}, "input 'query' has datatype a list, expected one of BOOL, UINT8, "
         "UINT16, UINT32, UINT64, INT8, INT16, INT32, INT64, FP16, FP32, FP64"),
        ({"datatype": "BF16"}, 'input \'query\' has datatype "BF16", expected one of BOOL, UINT8, '
         "UINT16, UINT32, UINT64, INT8, INT16, INT32, INT64, FP16, FP32, FP64"),
        ({"datatype": "FP16"}, "input 'query' has datatype FP16, which has no JSON form; send "
         "binary data, or FP32"),
        ({"shape": ...}, "input 'query' has shape null, expected a list of whole numbers"),
        ({"shape": 6}, "input 'query' has shape 6, expected a list of whole numbers"),
        ({"shape": [2, -3]}, "input 'query' has -3 in its shape, expected whole numbers from 0 "
         "to 2147483647"),
        ({"shape": [2, 3.0]}, "input 'query' has 3.0 in its shape, expected whole numbers from 0 "
         "to 2147483647"),
        ({"shape": [0, 2**31 - 1, 2**31 - 1], "data": []}, "input 'query' has shape "
         "[0, 2147483647, 2147483647], which no array can have"),
        ({"shape": [1] * 40, "data": [1]}, "input 'query' has more than 32 axes, expected at "
         "most 4"),
    ],
)  # fmt: skip
def test_a_malformed_json_input_is_refused(members: dict[str, Any], said: str) -> None:
    assert refuse(query(**members)) == said


@pytest.mark.parametrize(
    ("size", "shown"),
    [(-1, "-1"), (True, "true"), (24.0, "24.0"), ("24", '"24"')],
)
def test_a_binary_size_is_a_number_of_bytes(size: object, shown: str) -> None:
    root = query(data=..., parameters={"binary_data_size": size})
    assert refuse(root, bytes(24)) == (
        f"parameter 'binary_data_size' of input 'query' is {shown}, expected a number of bytes"
    )


def test_a_binary_size_unlike_the_shape_is_refused() -> None:
    root = query(data=..., parameters={"binary_data_size": 20})
    assert refuse(root, bytes(20)) == (
        "input 'query' has binary_data_size 20, expected 24 for shape [2, 3] of FP32"
    )


def test_missing_bytes_are_refused() -> None:
    root = query(data=..., parameters={"binary_data_size": 24})
    assert refuse(root, bytes(23)) == (
        "input 'query' needs 24 bytes at offset 0 behind the JSON, but only 23 follow it"
    )


@pytest.mark.parametrize("members", [{}, {"data": ..., "parameters": {"binary_data_size": 24}}])
def test_bytes_left_over_are_refused(members: dict[str, Any]) -> None:
    used = 24 if members else 0
    assert refuse(query(**members), bytes(used + 3)) == (
        f"{used + 3} bytes follow the JSON, but the inputs' binary_data_size add up to {used}"
    )


def test_an_input_comes_once() -> None:
    root = {"inputs": query()["inputs"] * 2}
    assert refuse(root) == "input 'query' comes twice, expected once"


def test_shared_memory_is_not_offered() -> None:
    root = query(data=..., parameters={"shared_memory_region": "a"})
    with pytest.raises(NotOfferedError) as caught:
        read_inputs(root, NOTHING)
    assert str(caught.value) == (
        "input 'query' asks for shared memory, which is not offered; send its data"
    )


def test_any_byte_but_nought_is_true_once_the_engine_has_it() -> None:
    """The bytes pass unchanged; numpy's arithmetic on them is undefined until then."""
    root = {"inputs": [describe_binary("mask", np.zeros((1, 4), bool))]}
    found = read_inputs(root, memoryview(b"\x01\x00\x02\xff"))["mask"]
    assert found.view(np.uint8).tolist() == [[1, 0, 2, 255]]
