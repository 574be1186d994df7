"""Compressed bodies are inflated exactly, within their bound, or refused."""

import gzip
import itertools
import tracemalloc
import zlib
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from service.errors import InvalidRequestError, RequestTooLargeError
from service.http.compression import Coding
from service.http.inflation import MAX_MEMBERS, STEP_BYTES, Inflation

MIB: Final = 2**20
TEXT: Final = b"attention " * 40
COMPRESS: Final[dict[Coding, Callable[[bytes], bytes]]] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
}
FORMATS: Final = {
    "gzip": "Content-Encoding is gzip, expected gzip (RFC 1952)",
    "deflate": "Content-Encoding is deflate, expected the zlib format (RFC 1950), not bare deflate "
    "data",
}
CODINGS: Final = st.sampled_from(sorted(COMPRESS))
EACH: Final = pytest.mark.parametrize("coding", sorted(COMPRESS))


def inflate(coding: Coding, *parts: bytes, max_bytes: int = MIB) -> bytes:
    inflation = Inflation(coding, max_bytes)
    pieces = [piece for part in parts for piece in inflation.inflate(part)]
    inflation.finish()
    return b"".join(pieces)


def refuse(coding: Coding, *parts: bytes) -> str:
    with pytest.raises(InvalidRequestError) as caught:
        inflate(coding, *parts)
    return str(caught.value)


def split(data: bytes, cuts: list[int]) -> list[bytes]:
    places = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[start:end] for start, end in itertools.pairwise(places)]


@given(CODINGS, st.binary(max_size=200), st.integers(0, 9), st.lists(st.integers(0, 999)))
def test_any_bytes_in_any_parts_come_back(
    coding: Coding, data: bytes, level: int, cuts: list[int]
) -> None:
    packed = gzip.compress(data, level) if coding == "gzip" else zlib.compress(data, level)
    assert inflate(coding, *split(packed, cuts)) == data


@given(st.lists(st.binary(max_size=30), min_size=1, max_size=4), st.lists(st.integers(0, 999)))
def test_a_gzip_body_may_have_several_members(members: list[bytes], cuts: list[int]) -> None:
    packed = b"".join(map(gzip.compress, members))
    assert inflate("gzip", *split(packed, cuts)) == b"".join(members)


@given(st.integers(1, 3 * STEP_BYTES), st.lists(st.integers(0, 999)))
@example(STEP_BYTES, [1])
@example(2 * STEP_BYTES, [])
def test_bodies_of_several_steps_come_back(size: int, cuts: list[int]) -> None:
    data = bytes(size)
    assert inflate("gzip", *split(gzip.compress(data, 9), cuts)) == data


@given(CODINGS, st.lists(st.integers(0, 999), max_size=3), st.integers(1, 999))
def test_a_body_that_is_cut_is_refused(coding: Coding, cuts: list[int], end: int) -> None:
    packed = COMPRESS[coding](TEXT)
    whole = packed[: 1 + end % (len(packed) - 1)]
    assert refuse(coding, *split(whole, cuts)) == (
        f"the body cannot be inflated: it ends too early; {FORMATS[coding]}"
    )


def test_no_bytes_are_no_body() -> None:
    assert inflate("gzip") == inflate("gzip", b"") == b""


@given(CODINGS, st.integers(0, 10**6), st.integers(1, 255), st.lists(st.integers(0, 999)))
def test_a_damaged_byte_is_noticed_or_changes_nothing(
    coding: Coding, place: int, change: int, cuts: list[int]
) -> None:
    packed = bytearray(COMPRESS[coding](TEXT))
    packed[place % len(packed)] ^= change
    with suppress(InvalidRequestError):
        assert inflate(coding, *split(bytes(packed), cuts)) == TEXT


@given(CODINGS, st.binary(min_size=1, max_size=60))
def test_bytes_that_are_no_such_data_are_refused_whatever_they_are(
    coding: Coding, data: bytes
) -> None:
    try:
        wanted = zlib.decompress(data, 31 if coding == "gzip" else 15)
    except zlib.error:
        assert refuse(coding, data).endswith(FORMATS[coding])
    else:
        assert inflate(coding, data) == wanted


@EACH
def test_the_check_sum_is_checked(coding: Coding) -> None:
    packed = bytearray(COMPRESS[coding](TEXT))
    packed[-6 if coding == "gzip" else -1] ^= 1
    assert refuse(coding, bytes(packed)) == (
        f"the body cannot be inflated: incorrect data check; {FORMATS[coding]}"
    )


def test_the_length_is_checked() -> None:
    packed = bytearray(gzip.compress(TEXT))
    packed[-1] ^= 1
    assert refuse("gzip", bytes(packed)) == (
        f"the body cannot be inflated: incorrect length check; {FORMATS['gzip']}"
    )


@EACH
@pytest.mark.parametrize("rest", [b"\x00", b"{}", b"\x1e\x8b"])
def test_bytes_behind_the_end_are_refused(coding: Coding, rest: bytes) -> None:
    packed = COMPRESS[coding](TEXT)
    text = f"the body cannot be inflated: other bytes follow its end; {FORMATS[coding]}"
    assert refuse(coding, packed + rest) == refuse(coding, packed, rest) == text


def test_only_gzip_has_members() -> None:
    packed = zlib.compress(TEXT)
    assert "other bytes follow its end" in refuse("deflate", packed + packed)


def test_bare_deflate_data_is_refused_with_the_format_that_is_meant() -> None:
    bare = zlib.compress(TEXT, wbits=-15)
    assert refuse("deflate", bare).endswith("; " + FORMATS["deflate"])


def test_data_of_a_dictionary_that_only_the_client_has_is_refused() -> None:
    packer = zlib.compressobj(zdict=b"attention")
    said = refuse("deflate", packer.compress(TEXT) + packer.flush())
    assert said.startswith("the body cannot be inflated: Error 2 while decompressing data; ")


@EACH
def test_the_bound_is_that_of_the_inflated_body(coding: Coding) -> None:
    packed = COMPRESS[coding](TEXT)
    assert inflate(coding, packed, max_bytes=len(TEXT)) == TEXT
    with pytest.raises(RequestTooLargeError) as caught:
        inflate(coding, packed, max_bytes=len(TEXT) - 1)
    assert str(caught.value) == (
        "the request body is larger than allowed after inflating, expected at most 399 bytes "
        "(LIMELIGHT_MAX_REQUEST_BYTES)"
    )


def test_members_are_bounded_together() -> None:
    with pytest.raises(RequestTooLargeError):
        inflate("gzip", gzip.compress(TEXT) * 3, max_bytes=2 * len(TEXT))


def test_members_are_counted() -> None:
    member = gzip.compress(b"")
    assert inflate("gzip", member * MAX_MEMBERS) == b""
    assert refuse("gzip", member * (MAX_MEMBERS + 1)) == (
        f"the body cannot be inflated: it has more than 4096 members; {FORMATS['gzip']}"
    )


@EACH
def test_a_body_that_inflates_a_thousandfold_takes_no_more_memory_than_its_bound(
    coding: Coding,
) -> None:
    packed, bound = COMPRESS[coding](bytes(64 * MIB)), 4 * MIB
    assert len(packed) < MIB // 8
    tracemalloc.start()
    with pytest.raises(RequestTooLargeError):
        inflate(coding, packed, max_bytes=bound)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak_bytes < bound + 4 * STEP_BYTES
