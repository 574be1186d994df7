"""The table of datatypes that all doors share."""

import numpy as np
import pytest

from service.datatypes import DTYPES, check_float32, name_datatype
from service.errors import InvalidRequestError


@pytest.mark.parametrize("name", DTYPES)
def test_an_array_has_the_name_that_its_dtype_was_found_by(name: str) -> None:
    assert name_datatype(np.zeros(3, DTYPES[name])) == name


@pytest.mark.parametrize("name", DTYPES)
def test_data_is_little_endian_on_every_machine(name: str) -> None:
    assert DTYPES[name] == DTYPES[name].newbyteorder("<")


def test_the_name_says_nothing_of_the_byte_order() -> None:
    assert name_datatype(np.zeros(3, ">f4")) == "FP32"


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("BOOL", 1), ("UINT8", 1), ("UINT16", 2), ("UINT32", 4), ("UINT64", 8), ("INT8", 1),
        ("INT16", 2), ("INT32", 4), ("INT64", 8), ("FP16", 2), ("FP32", 4), ("FP64", 8),
    ],
)  # fmt: skip
def test_the_sizes_are_those_of_the_protocol(name: str, size: int) -> None:
    assert DTYPES[name].itemsize == size


def test_a_type_that_the_protocol_lacks_has_the_name_numpy_gives_it() -> None:
    assert name_datatype(np.zeros(3, np.complex64)) == "complex64"


def test_float32_passes() -> None:
    check_float32("query", np.zeros(3, np.float32))


@pytest.mark.parametrize(
    ("dtype", "came"), [("f8", "FP64"), ("f2", "FP16"), ("i4", "INT32"), ("?", "BOOL")]
)
def test_another_datatype_is_refused_with_the_cure(dtype: str, came: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        check_float32("bias", np.zeros(3, dtype))
    assert str(caught.value) == (
        f"input 'bias' has datatype {came}, expected FP32: convert it before sending "
        "(/v1/attention converts FP16 and FP64 itself)"
    )


def test_big_endian_float32_is_not_float32() -> None:
    """onnxruntime takes its bytes for little-endian ones, without an error."""
    with pytest.raises(InvalidRequestError):
        check_float32("query", np.zeros(3, ">f4"))
