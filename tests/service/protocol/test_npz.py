"""npz archives: what numpy writes comes back, and what it asks for is sent."""

import io
import struct
import tracemalloc
import zipfile
import zlib
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from service.errors import InvalidRequestError, RequestTooLargeError
from service.protocol.npz import count_bytes, decode_npz, encode_npz

MAX_BYTES = 2**20
NAMES = ["query", "key", "value", "mask", "key_mask", "bias"]
TENSORS = st.dictionaries(
    st.sampled_from(NAMES),
    st.sampled_from(["?", ">i8", "u1", "<f2", ">f4", "<f8"]).flatmap(
        lambda kind: arrays.arrays(kind, arrays.array_shapes(min_dims=0, min_side=0, max_side=3))
    ),
    max_size=4,
)


def write(tensors: dict[str, Any], *, compressed: bool = False) -> bytes:
    stream = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(stream, allow_pickle=True, **tensors)
    return stream.getvalue()


def write_npy(array: Any) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.asarray(array))
    return stream.getvalue()


def zip_members(*members: tuple[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return stream.getvalue()


def forge(data: bytes, declared_bytes: int, *, method: int = 8, flags: int = 0) -> bytes:
    """An archive of one member, whose size and method are said to be something else."""
    name = b"query.npy"
    common = struct.pack("<4HLLL2H", flags, method, 0, 0, 0, len(data), declared_bytes, 9, 0)
    local = b"PK\3\4" + struct.pack("<H", 20) + common + name + data
    central = (
        b"PK\1\2" + struct.pack("<2H", 20, 20) + common + struct.pack("<3H2L", 0, 0, 0, 0, 0) + name
    )
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 1, 1, len(central), len(local), 0)
    return local + central + end


def refuse(body: bytes, max_bytes: int = MAX_BYTES) -> str:
    with pytest.raises(InvalidRequestError) as caught:
        decode_npz(body, max_bytes)
    return str(caught.value)


@given(TENSORS, st.booleans())
def test_what_numpy_writes_comes_back(tensors: dict[str, Any], compressed: bool) -> None:
    found = decode_npz(write(tensors, compressed=compressed), MAX_BYTES)
    assert found.keys() == tensors.keys()
    for name, array in tensors.items():
        assert found[name].dtype == array.dtype.newbyteorder("<")
        assert found[name].shape == array.shape
        assert found[name].tobytes() == array.astype(found[name].dtype).tobytes()


@given(TENSORS)
def test_numpy_reads_what_is_sent(tensors: dict[str, Any]) -> None:
    with np.load(io.BytesIO(encode_npz(tensors))) as found:
        assert set(found.files) == tensors.keys()
        for name, array in tensors.items():
            assert found[name].dtype == array.dtype
            assert found[name].tobytes() == array.tobytes()


def test_arrays_in_column_order_come_back_row_by_row() -> None:
    array = np.asfortranarray(np.arange(24.0).reshape(2, 3, 4))
    found = decode_npz(write({"query": array}), MAX_BYTES)["query"]
    assert found.flags.c_contiguous
    np.testing.assert_array_equal(found, array)


def test_objects_are_not_unpickled() -> None:
    assert refuse(write({"query": np.array([{}], object)})) == (
        "array 'query.npy' has dtype '|O', expected numbers or booleans of at most 8 bytes"
    )


@pytest.mark.parametrize("compressed", [False, True])
def test_an_archive_cut_at_any_byte_is_refused(*, compressed: bool) -> None:
    body = write({"query": np.ones((2, 3), np.float32), "key": np.ones(2)}, compressed=compressed)
    assert len(decode_npz(body, MAX_BYTES)) == 2
    for cut in range(len(body)):
        refuse(body[:cut])


@pytest.mark.parametrize("compressed", [False, True])
@given(data=st.data())
def test_a_damaged_archive_is_read_or_refused(data: st.DataObject, compressed: bool) -> None:
    body = bytearray(write({"query": np.ones((2, 3), np.float32)}, compressed=compressed))
    for _ in range(data.draw(st.integers(1, 3))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    with suppress(InvalidRequestError, RequestTooLargeError):
        decode_npz(bytes(body), MAX_BYTES)


@given(st.binary(max_size=80))
def test_bytes_after_the_magic_are_refused(data: bytes) -> None:
    assert refuse(b"PK\x03\x04" + data).startswith("the npz archive cannot be read: ")


def test_a_declared_size_beyond_the_bound_is_refused_before_inflating() -> None:
    body = write({"query": np.zeros(1000)}, compressed=True)
    with pytest.raises(RequestTooLargeError) as caught:
        decode_npz(body, 8127)
    assert str(caught.value) == (
        "the npz archive holds 8128 bytes, expected at most 8127 (LIMELIGHT_MAX_REQUEST_BYTES)"
    )
    assert decode_npz(body, 8128)["query"].shape == (1000,)


def test_the_bound_is_for_all_members_together() -> None:
    tensors = {name: np.zeros(100) for name in NAMES}
    with pytest.raises(RequestTooLargeError):
        decode_npz(write(tensors), 5 * 928)
    assert len(decode_npz(write(tensors), 6 * 928)) == 6


def test_a_member_that_inflates_to_more_than_it_declares_takes_no_more_memory() -> None:
    deflate = zlib.compressobj(9, zlib.DEFLATED, -15)
    bomb = deflate.compress(bytes(32 * MAX_BYTES)) + deflate.flush()
    body = forge(bomb, declared_bytes=128)
    tracemalloc.start()
    try:
        said = refuse(body)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert said.startswith("the npz archive cannot be read: Bad CRC-32")
    assert peak_bytes < MAX_BYTES


def test_a_member_that_holds_less_than_it_declares_is_refused() -> None:
    stored = forge(write_npy(np.zeros(4)), declared_bytes=4000, method=0)
    assert refuse(stored).startswith("the npz archive cannot be read: ")


@pytest.mark.parametrize(("method", "flags"), [(12, 0), (14, 0), (9, 0), (0, 1)])
def test_other_methods_and_encryption_are_refused(method: int, flags: int) -> None:
    data = write_npy(np.zeros(4))
    assert refuse(forge(data, len(data), method=method, flags=flags)) == (
        "member 'query.npy' of the npz archive is encrypted or compressed in another way than "
        "deflate; write it with numpy.savez"
    )


def test_a_member_that_is_no_npy_file_is_refused() -> None:
    assert refuse(zip_members(("query.txt", b"1 2 3"))) == (
        "member 'query.txt' of the npz archive has no suffix .npy"
    )
    assert refuse(zip_members(("query.npy", b"1 2 3"))) == (
        "array 'query.npy' is not an npy file of format 1.0 or 2.0"
    )


def test_a_name_that_is_not_ascii_is_shown_in_escapes() -> None:
    assert refuse(zip_members(("\N{SNOWMAN}", b""))) == (
        "member '\\u2603' of the npz archive has no suffix .npy"
    )


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_name_comes_once() -> None:
    data = write_npy(np.zeros(4))
    assert refuse(zip_members(("query.npy", data), ("query.npy", data))) == (
        "member 'query.npy' of the npz archive comes twice"
    )


def test_many_members_are_refused() -> None:
    members = [(f"{i}.npy", b"") for i in range(65)]
    assert refuse(zip_members(*members)) == "the npz archive has 65 members, expected at most 64"


def test_members_that_share_bytes_are_refused() -> None:
    """Many entries may point at one large member: a zip bomb without nesting."""
    body = zip_members(("query.npy", write_npy(np.zeros(4))), ("value.npy", b"x"))
    directory = body.index(b"PK\1\2")
    second = body.index(b"PK\1\2", directory + 1)
    offset = second + 42
    lying = body[:offset] + struct.pack("<L", 0) + body[offset + 4 :]
    assert refuse(lying) == "member 'value.npy' of the npz archive overlaps another"


def test_an_empty_archive_has_no_arrays() -> None:
    assert decode_npz(zip_members(), MAX_BYTES) == {}


def test_what_an_archive_declares_is_counted_before_it_is_read() -> None:
    stream = io.BytesIO()
    np.savez_compressed(stream, query=np.zeros((2, 3, 4), np.float32), mask=np.ones((3, 5), bool))
    body = stream.getvalue()
    assert count_bytes(body, 1000) == (128 + 96) + (128 + 15)
    with pytest.raises(RequestTooLargeError, match=r"^the npz archive holds 367 bytes, expected"):
        count_bytes(body, 366)
    with pytest.raises(InvalidRequestError, match=r"^the npz archive cannot be read: "):
        count_bytes(body[:20], 1000)
