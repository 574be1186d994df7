"""npy files: those that numpy writes come back, and no header is believed."""

import io
import struct
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from service.errors import InvalidRequestError
from service.protocol.npy import decode_npy

KINDS = st.sampled_from(["?", "i1", "u1", "<i2", ">i2", "<u4", ">u4", "<i8", ">u8", "<f2", ">f2",
                         "<f4", ">f4", "<f8", ">f8"])  # fmt: skip
ARRAYS = KINDS.flatmap(
    lambda kind: arrays.arrays(kind, arrays.array_shapes(min_dims=0, min_side=0, max_side=4))
)


def write(array: Any, version: tuple[int, int] | None = None) -> bytes:
    stream = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numpy warns of versions that it would not choose
        np.lib.format.write_array(stream, array, version)
    return stream.getvalue()


def forge(header: str, data: bytes = b"") -> bytes:
    """A file whose header is any text."""
    text = header.encode("latin-1")
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + data


def describe(shape: str, descr: str = "'<f4'", order: str = "False") -> str:
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}}}"


def refuse(data: bytes) -> str:
    with pytest.raises(InvalidRequestError) as caught:
        decode_npy("query.npy", data)
    return str(caught.value)


@given(ARRAYS, st.booleans(), st.sampled_from([(1, 0), (2, 0)]))
def test_what_numpy_writes_comes_back_row_major_and_little_endian(
    array: Any,
    fortran: bool,
    version: tuple[int, int],
) -> None:
    written = write(np.asfortranarray(array) if fortran and array.ndim else array, version)
    found = decode_npy("query.npy", written)
    assert found.shape == array.shape
    assert found.dtype == array.dtype.newbyteorder("<")
    assert found.flags.c_contiguous
    assert found.tobytes() == array.astype(found.dtype).tobytes()


def test_a_row_major_array_is_a_view() -> None:
    written = write(np.arange(6, dtype=np.float32))
    assert np.shares_memory(decode_npy("query.npy", written), np.frombuffer(written, np.uint8))


def test_members_of_a_header_come_in_any_order_and_with_any_spaces() -> None:
    header = "\t{'shape':(2,1),'fortran_order':False,'descr':\"<f4\",}  \n"
    assert decode_npy("query.npy", forge(header, bytes(8))).shape == (2, 1)


@given(ARRAYS, st.data())
def test_a_file_cut_anywhere_is_refused(array: Any, data: st.DataObject) -> None:
    written = write(array)
    cut = data.draw(st.integers(0, len(written) - 1))
    if cut < len(written) - array.nbytes or array.nbytes:
        refuse(written[:cut])


@given(st.text(st.characters(max_codepoint=255), max_size=60))
@example("{'descr': '<f4', 'fortran_order': False, 'shape': (3L,)}")
@example("((((")
@example("'''")
@example("(" * 3000)
@example("-" * 9000 + "1")
@example("1+" * 4000 + "1")
@example("\0")
@example("{[]: 1}")
@example("{'\\ud800': 1}")
@example("__import__('os').getcwd()")
def test_any_text_as_header_is_refused(header: str) -> None:
    assert refuse(forge(header)) == (
        "the npy header of array 'query.npy' cannot be read, expected a dict of descr, "
        "fortran_order and shape"
    )


@pytest.mark.parametrize(
    "descr",
    ["'|O'", "'O'", "'<c8'", "'<f16'", "'|S4'", "'<U4'", "'<M8[s]'", "'|V8'", "'f4,f4'", "'a5'",
     "[('x', '<f4')]", "('<f4', (2,))", "None", "1.5", "{}", "'\\ud800'", "'=f4'", "'<b2'"],
)  # fmt: skip
def test_what_is_not_numbers_or_booleans_is_refused(descr: str) -> None:
    assert refuse(forge(describe("(1,)", descr), bytes(4))) == (
        f"array 'query.npy' has dtype {descr}, expected numbers or booleans of at most 8 bytes"
    )


def test_objects_are_not_unpickled() -> None:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.array([{}], object), allow_pickle=True)
    assert refuse(stream.getvalue()) == (
        "array 'query.npy' has dtype '|O', expected numbers or booleans of at most 8 bytes"
    )


@pytest.mark.parametrize(
    ("shape", "said"),
    [
        ("(3,)", "array 'query.npy' has 8 bytes of data, expected 12 for shape [3] of float32"),
        ("(1,)", "array 'query.npy' has 8 bytes of data, expected 4 for shape [1] of float32"),
        ("(-2, -1)", "array 'query.npy' has -2 in its shape, expected whole numbers from 0 to "
         "2147483647"),
        ("(True, 2)", "array 'query.npy' has true in its shape, expected whole numbers from 0 to "
         "2147483647"),
        ("(2.0,)", "array 'query.npy' has 2.0 in its shape, expected whole numbers from 0 to "
         "2147483647"),
        (f"({'9' * 4000}, {'9' * 4000})", f"array 'query.npy' has {'9' * 61}... in its shape, "
         "expected whole numbers from 0 to 2147483647"),
        ("(0, 2147483647, 2147483647)", "array 'query.npy' has shape [0, 2147483647, 2147483647],"
         " which no array can have"),
        ("2", "array 'query.npy' has no shape, expected a tuple"),
        ("[2]", "array 'query.npy' has no shape, expected a tuple"),
        (f"({'1, ' * 40})", "array 'query.npy' has more than 32 axes, expected at most 4"),
    ],
)  # fmt: skip
def test_a_shape_that_cannot_be_is_refused(shape: str, said: str) -> None:
    assert refuse(forge(describe(shape), bytes(8))) == said


@pytest.mark.parametrize(
    "data", [b"", b"\x93NUMPY", b"\x93NUMPX\x01\x00", b"\x93NUMPY\x03\x00\x00\x00\x00\x00"]
)
def test_another_magic_or_version_is_refused(data: bytes) -> None:
    assert refuse(data) == "array 'query.npy' is not an npy file of format 1.0 or 2.0"


@pytest.mark.parametrize(
    "data", [b"\x93NUMPY\x01\x00\xff\xff{}", b"\x93NUMPY\x02\x00\xff\xff\xff\xff" + bytes(70000)]
)
def test_a_header_longer_than_allowed_or_than_the_file_is_refused(data: bytes) -> None:
    assert refuse(data) == "the npy header of array 'query.npy' is too long or cut off"
