"""safetensors bodies, against the library, and every way to lie in a header."""

import json
import struct
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from service.errors import InvalidRequestError
from service.protocol.safetensors_body import decode_safetensors, encode_safetensors

NAMES = ["query", "key", "value", "mask", "key_mask", "bias"]
KINDS = ["?", "i1", "u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f2", "<f4", "<f8"]
TENSORS = st.dictionaries(
    st.sampled_from(NAMES),
    st.sampled_from(KINDS).flatmap(
        lambda kind: arrays.arrays(kind, arrays.array_shapes(min_dims=0, min_side=0, max_side=3))
    ),
    min_size=1,  # of no tensors but metadata the library makes a header that is no JSON
    max_size=4,
)
ANSWERS = st.dictionaries(
    st.sampled_from(["output", "attention_weights"]),
    arrays.arrays("<f4", arrays.array_shapes(max_side=3)),
)
EIGHT = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}


def forge(header: Any, data: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def refuse(body: bytes) -> str:
    with pytest.raises(InvalidRequestError) as caught:
        decode_safetensors(body)
    return str(caught.value)


@given(TENSORS, st.dictionaries(st.text(max_size=4), st.text(max_size=4), max_size=2))
def test_what_the_library_writes_comes_back(
    tensors: dict[str, Any], metadata: dict[str, str]
) -> None:
    body = safetensors.numpy.save(tensors, metadata)
    found = decode_safetensors(body)
    assert found.keys() == tensors.keys()
    for name, array in tensors.items():
        assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape)
        assert found[name].tobytes() == array.tobytes()


@given(ANSWERS)
def test_the_library_reads_what_is_sent(tensors: dict[str, Any]) -> None:
    found = safetensors.numpy.load(encode_safetensors(tensors, {"model_name": "demo"}))
    assert found.keys() == tensors.keys()
    for name, array in tensors.items():
        assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape)
        assert found[name].tobytes() == array.tobytes()


def test_an_array_in_column_order_is_sent_row_by_row() -> None:
    array = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    found = safetensors.numpy.load(encode_safetensors({"output": array}, {}))
    np.testing.assert_array_equal(found["output"], array)


def test_the_same_answer_has_the_same_bytes_and_its_data_is_aligned() -> None:
    tensors = {"output": np.full((2, 3), 1.5, np.float32)}
    notes = {"model_name": "demo", "model_version": "1", "graph": "fused_bias"}
    body = encode_safetensors(tensors, notes)
    assert encode_safetensors(tensors, notes) == body
    header_bytes = int.from_bytes(body[:8], "little")
    assert header_bytes % 8 == 0
    assert json.loads(body[8 : 8 + header_bytes])["__metadata__"] == notes


def test_tensors_are_views_of_the_body() -> None:
    body = safetensors.numpy.save({"query": np.arange(6, dtype=np.float32)})
    found = decode_safetensors(body)["query"]
    assert np.shares_memory(found, np.frombuffer(body, np.uint8))
    assert not found.flags.writeable


def test_a_body_cut_at_any_byte_is_refused() -> None:
    tensors = {"query": np.ones((2, 3), np.float32), "mask": np.ones((1, 3), bool)}
    body = safetensors.numpy.save(tensors)
    assert len(decode_safetensors(body)) == 2
    for cut in range(len(body)):
        refuse(body[:cut])


@given(st.data())
def test_a_damaged_body_is_read_or_refused(data: st.DataObject) -> None:
    body = bytearray(safetensors.numpy.save({"query": np.ones((2, 3), np.float32)}))
    body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    with suppress(InvalidRequestError):
        decode_safetensors(bytes(body))


@given(st.binary(max_size=60), st.binary(max_size=4))
@example(b"{}", b"")
@example(b'{"a": {"dtype": "F32", "shape": [], "data_offsets": [0, 4]}}', bytes(4))
@example(b"[" * 40, b"")
@example(b'{"\xff": 1}', b"")
def test_any_header_is_read_or_refused(header: bytes, data: bytes) -> None:
    with suppress(InvalidRequestError):
        decode_safetensors(forge(header, data))


def test_gaps_overlaps_and_bytes_left_over_are_refused() -> None:
    second = {"dtype": "U8", "shape": [3]}
    for start in (9, 7, 0):
        header = {"query": EIGHT, "mask": second | {"data_offsets": [start, start + 3]}}
        assert "has data_offsets" in refuse(forge(header, bytes(12)))
    assert refuse(forge({"query": EIGHT}, bytes(9))) == (
        "the safetensors body has 9 bytes of data, but its tensors end at 8"
    )


@pytest.mark.parametrize(
    ("offsets", "shown"),
    [([1, 9], "[1, 9]"), ([0, 7], "[0, 7]"), ([0, 12], "[0, 12]"), ([8, 0], "[8, 0]"),
     ([0, 2**63], "[0, 9223372036854775808]")],
)  # fmt: skip
def test_offsets_unlike_the_shape_are_refused(offsets: list[int], shown: str) -> None:
    assert refuse(forge({"query": EIGHT | {"data_offsets": offsets}}, bytes(8))) == (
        f'tensor "query" has data_offsets {shown}, expected [0, 8] for shape [2] of float32, '
        "within 8 bytes of data"
    )


def test_offsets_beyond_the_data_are_refused() -> None:
    assert refuse(forge({"query": EIGHT}, bytes(7))) == (
        'tensor "query" has data_offsets [0, 8], expected [0, 8] for shape [2] of float32, '
        "within 7 bytes of data"
    )


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"dtype": "BF16"}, 'has dtype "BF16", expected one of BOOL, U8, I8, U16, I16, U32, I32, '
         "U64, I64, F16, F32, F64"),
        ({"dtype": None}, "has dtype null, expected one of BOOL, U8, I8, U16, I16, U32, I32, U64, "
         "I64, F16, F32, F64"),
        ({"shape": 2}, "has no shape, expected a list of whole numbers"),
        ({"shape": [-2]}, "has -2 in its shape, expected whole numbers from 0 to 2147483647"),
        ({"shape": [True]}, "has true in its shape, expected whole numbers from 0 to 2147483647"),
        ({"shape": [10**4000, 10**4000]}, f"has 1{'0' * 60}... in its shape, expected whole "
         "numbers from 0 to 2147483647"),
        ({"shape": [0, 2**31 - 1, 2**31 - 1]}, "has shape [0, 2147483647, 2147483647], which no "
         "array can have"),
        ({"shape": [1] * 40}, "has more than 32 axes, expected at most 4"),
        ({"data_offsets": [0]}, "has no data_offsets, expected two whole numbers"),
        ({"data_offsets": [0, True]}, "has no data_offsets, expected two whole numbers"),
        ({"data_offsets": [0, -8]}, "has no data_offsets, expected two whole numbers"),
        ({"data_offsets": [0, 10**4000]}, "has no data_offsets, expected two whole numbers"),
        ({"data_offsets": "08"}, "has no data_offsets, expected two whole numbers"),
    ],
)  # fmt: skip
def test_an_entry_with_a_member_that_cannot_be_is_refused(entry: dict[str, Any], said: str) -> None:
    assert refuse(forge({"query": EIGHT | entry}, bytes(8))) == f'tensor "query" {said}'


@pytest.mark.parametrize("entry", [1, None, [], "a"])
def test_an_entry_is_an_object(entry: object) -> None:
    assert refuse(forge({"query": entry})).startswith('tensor "query" has dtype null')


@pytest.mark.parametrize(
    ("header", "said"),
    [
        (b"[]", "the safetensors header is a list, expected a JSON object"),
        (b"{", "the safetensors header is not JSON: Expecting property name enclosed in double "
         "quotes: line 1 column 2 (char 1)"),
        (b'{"a": NaN}', "the safetensors header is not JSON: NaN is not a number"),
        (b'{"a": 1, "a": 2}', "the safetensors header is not JSON: 'a' comes twice"),
        (b'{"a": {"dtype": 1, "dtype": 2}}', "the safetensors header is not JSON: 'dtype' comes "
         "twice"),
        (b"[" * 60000, "the safetensors header is not JSON: nested too deeply"),
    ],
)  # fmt: skip
def test_a_header_is_one_json_object_whose_names_are_all_different(
    header: bytes, said: str
) -> None:
    assert refuse(forge(header)) == said


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"1234567", "the safetensors body has 7 bytes, expected at least 8"),
        (struct.pack("<Q", 3) + b"{}", "the safetensors header has 3 bytes by its first 8, "
         "expected at most 2"),
        (struct.pack("<Q", 2**64 - 1) + bytes(70000), "the safetensors header has "
         "18446744073709551615 bytes by its first 8, expected at most 65536"),
    ],
)  # fmt: skip
def test_a_length_that_cannot_be_is_refused(body: bytes, said: str) -> None:
    assert refuse(body) == said


def test_spaces_after_the_header_are_part_of_the_format() -> None:
    text = json.dumps({"query": EIGHT}).encode() + b"   "
    assert decode_safetensors(forge(text, bytes(8)))["query"].shape == (2,)
