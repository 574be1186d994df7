"""Long lists are read as the exact parser reads them, whatever the pieces, or not at all."""

import itertools
import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import event, example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from simdjson import Parser

from service.datatypes import DTYPES
from service.protocol import json_numbers
from service.protocol.json_numbers import OddListError, read_numbers
from service.protocol.json_tensor import convert_scalars, flatten_list

PIECES = st.integers(1, 40)
DATATYPES = st.sampled_from([name for name in DTYPES if name != "FP16"])
TOKENS = st.sampled_from(
    ["[", "[", "]", "]", ",", ",", ",", " ", "\n", "0", "1", "-", "-0", ".0", "0.5", "1e3", "1e400",
     "3.5e38", "true", "false", "null", '"a"', "{", "}", "300", "18446744073709551615",
     "18446744073709551616", "NaN", "[[1,2],[3,4]]", "[1,2]", "\0", "\xff"]
)  # fmt: skip


@contextmanager
def pieces_of(size_bytes: int) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_numbers, "PIECE_BYTES", size_bytes)
        yield


def read(text: str | bytes, datatype: str = "FP32", piece_bytes: int = 512) -> Any:
    """What stands between two other things."""
    raw = text.encode() if isinstance(text, str) else text
    with pieces_of(piece_bytes):
        return read_numbers(b"[]" + raw + b"]", 2, 2 + len(raw), datatype, Parser())


def read_exactly(text: bytes, datatype: str) -> Any:
    shape, scalars = flatten_list("query", orjson.loads(text))
    return convert_scalars("query", scalars, datatype).reshape(shape)


def check(text: bytes, datatype: str, piece_bytes: int) -> None:
    """What is read is what the exact parser reads."""
    try:
        found = read(text, datatype, piece_bytes)
    except OddListError:
        event("odd")
        return
    wanted = read_exactly(text, datatype)
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    assert found.tobytes() == wanted.tobytes()
    event("read")


def damage(data: st.DataObject, text: str) -> str:
    """A text with some places replaced."""
    for _ in range(data.draw(st.integers(1, 2))):
        start = data.draw(st.integers(0, len(text)))
        stop = data.draw(st.integers(start, min(len(text), start + 3)))
        text = text[:start] + data.draw(TOKENS | st.just("")) + text[stop:]
    return text


@given(
    DATATYPES.flatmap(
        lambda name: arrays.arrays(
            DTYPES[name],
            arrays.array_shapes(max_dims=4, max_side=5),
            elements=arrays.from_dtype(DTYPES[name], allow_nan=False, allow_infinity=False),
        )
    ),
    PIECES,
    st.sampled_from([None, 1]),
)
@settings(max_examples=300)
def test_every_tensor_of_the_contract_is_read_here(
    array: Any, piece_bytes: int, indent: int | None
) -> None:
    datatype = next(name for name, dtype in DTYPES.items() if dtype == array.dtype)
    text = json.dumps(array.tolist(), indent=indent).encode()
    if datatype == "UINT64" and array.max() >= 2**63:
        with pytest.raises(OddListError):
            read(text, datatype, piece_bytes)
        return
    found = read(text, datatype, piece_bytes)
    assert (found.dtype, found.shape) == (array.dtype, array.shape)
    assert found.tobytes() == array.tobytes()


@given(st.lists(TOKENS, max_size=12).map("".join), DATATYPES, PIECES)
@settings(max_examples=1000)
@example("[[1,2],3[,4]]", "FP32", 1)
@example("[[1,2,],[3]]", "FP32", 1)
@example("[[1,[2,3]],[[],4]]", "FP32", 40)
@example("[[[1],[2]],[[3]]]", "FP32", 1)
@example("[[[1]],[2]]", "FP32", 1)
@example("[[1]],[[2]]", "FP32", 1)
@example("[1,2,,3]", "FP32", 1)
@example("[,1]", "FP32", 1)
@example("[1,]", "FP32", 1)
@example("[-false]", "BOOL", 40)
@example("[-0]", "BOOL", 40)
@example("[truefalse]", "BOOL", 40)
@example("[0.false]", "BOOL", 40)
@example("[1.0]", "INT64", 40)
@example("[-0]", "FP32", 40)
@example("[1e400]", "FP64", 40)
@example("[18446744073709551615]", "FP64", 40)
@example("[[],[]]", "FP32", 1)
def test_any_text_is_read_exactly_or_not(text: str, datatype: str, piece_bytes: int) -> None:
    check(("[" + text + "]").encode("latin-1"), datatype, piece_bytes)
    check(text.encode("latin-1"), datatype, piece_bytes)


@given(
    arrays.arrays(np.float32, arrays.array_shapes(max_dims=4, max_side=4), elements=st.just(1.5))
    | arrays.arrays(np.bool_, arrays.array_shapes(max_dims=4, max_side=4)),
    PIECES,
    st.data(),
)
@settings(max_examples=1000)
def test_a_damaged_tensor_is_read_exactly_or_not(
    array: Any, piece_bytes: int, data: st.DataObject
) -> None:
    datatype = "BOOL" if array.dtype == np.bool_ else "FP32"
    text = damage(data, json.dumps(array.tolist()))
    check(text.encode("latin-1"), datatype, piece_bytes)


@pytest.mark.parametrize(
    "text",
    ["[[1,2],[3]]", "[[1],2]", "[1,[2]]", "[[[1],[2]],[[3]]]", "[[[1]],[[2],[3]]]", "[[],[1]]",
     "[[[1,2]],[[1],[2]]]", "[[1,2],[3,[4]]]", "[]", "[[]]", "[[[[[1]]]]]"],
)  # fmt: skip
@pytest.mark.parametrize("piece_bytes", [1, 5, 512])
def test_lists_that_are_no_tensor_are_left_alone(text: str, piece_bytes: int) -> None:
    with pytest.raises(OddListError):
        read(text, piece_bytes=piece_bytes)


@pytest.mark.parametrize(
    ("value", "datatypes"),
    [
        ("null", ["FP32", "FP64", "INT64", "BOOL"]),
        ('"1.5"', ["FP32", "FP64", "INT64", "BOOL"]),
        ("{}", ["FP32", "FP64", "INT64", "BOOL"]),
        ("true", ["FP32", "FP64", "INT64"]),
        ("NaN", ["FP32", "FP64", "INT64", "BOOL"]),
        ("Infinity", ["FP32", "FP64", "INT64", "BOOL"]),
        ("1e400", ["FP32", "FP64", "INT64", "BOOL"]),
        ("1e39", ["FP32", "INT64", "BOOL"]),
        ("18446744073709551616", ["FP32", "FP64", "INT64", "UINT64", "BOOL"]),
        ("256", ["UINT8", "INT8", "BOOL"]),
        ("-1", ["UINT8", "UINT64", "BOOL"]),
        ("1.0", ["INT8", "UINT64", "BOOL"]),
        ("2", ["BOOL"]),
        ("1", ["FP16"]),
    ],
)
def test_numbers_that_a_datatype_does_not_hold_are_left_alone(
    value: str, datatypes: list[str]
) -> None:
    for datatype, piece_bytes in itertools.product(datatypes, (1, 512)):
        for text in (f"[0, {value}, 1]", f"[[0, 1], [{value}, 1]]"):
            with pytest.raises(OddListError):
                read(text, datatype, piece_bytes)


@pytest.mark.parametrize("piece_bytes", [1, 7, 512])
@pytest.mark.parametrize("datatype", ["FP32", "FP64"])
def test_tokens_are_numbers_where_they_may_be(datatype: str, piece_bytes: int) -> None:
    for text in (
        "[0.1, NaN, -Infinity, 7, Infinity, 1e-50]",
        "[[[0.1, NaN, -Infinity], [-0.0, 5, 2]], [[Infinity, 3, 1], [16777217, NaN, 0.1]]]",
    ):
        with pieces_of(piece_bytes):
            found = read_numbers(text.encode(), 0, len(text), datatype, Parser(), non_finite=True)
        wanted = np.array(json.loads(text), DTYPES[datatype])
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted, strict=True)


@pytest.mark.parametrize("piece_bytes", [1, 512])
@pytest.mark.parametrize(
    "text",
    ["[1, NaN, 1e39]", "[NaN, null]", "[[NaN], [1, 2]]", "[[[NaN]], [1]]", "[NaN, 1NaN]", "[NaN, ]",
     "[NaN, -NaN]", "[nan]", "[[NaN, [1]]]", "[Infinity, 1e400]", "[NaN, true]"],
)  # fmt: skip
def test_beside_tokens_nothing_else_is_a_number(text: str, piece_bytes: int) -> None:
    with pieces_of(piece_bytes), pytest.raises(OddListError):
        read_numbers(text.encode(), 0, len(text), "FP32", Parser(), non_finite=True)


@pytest.mark.parametrize("datatype", ["BOOL", "INT64"])
def test_tokens_are_no_whole_numbers(datatype: str) -> None:
    with pytest.raises(OddListError):
        read_numbers(b"[1, NaN]", 0, 8, datatype, Parser(), non_finite=True)


def test_what_stands_around_a_list_does_not_count() -> None:
    text = b"[[9],[[1,2],[3,4]],[9]]"
    for piece_bytes in (1, 512):
        with pieces_of(piece_bytes):
            assert read_numbers(text, 5, 18, "FP32", Parser()).tolist() == [[1, 2], [3, 4]]


def test_the_text_may_be_a_bytearray() -> None:
    text = bytearray(b"[[1, 2.5]]")
    assert read_numbers(text, 0, 10, "FP32", Parser()).tolist() == [[1, 2.5]]


@given(st.lists(st.lists(st.lists(st.integers(-9, 9), min_size=1), min_size=1), max_size=4), PIECES)
def test_one_parser_reads_one_list_after_the_other(
    lists: list[list[list[int]]], piece_bytes: int
) -> None:
    """What was read does not change with what is read next, nor by a list that is no tensor."""
    parser, arrays = Parser(), []
    with pieces_of(piece_bytes):
        for rows in lists:
            text = json.dumps(rows).encode()
            with suppress(OddListError):
                arrays.append((rows, read_numbers(text, 0, len(text), "FP32", parser)))
    assert [array.tolist() for _, array in arrays] == [rows for rows, _ in arrays]
