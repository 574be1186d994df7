"""Which coding a body has, which one an answer gets, and that it can be undone."""

import gzip
import zlib
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.errors import UnsupportedEncodingError
from service.http.compression import Coding, choose_coding, compress, read_coding

HEADER = st.text(st.characters(max_codepoint=255), max_size=20)


@pytest.mark.parametrize(
    ("values", "coding"),
    [
        ([], None),
        ([""], None),
        (["identity"], None),
        ([" Identity "], None),
        (["gzip"], "gzip"),
        (["GZip"], "gzip"),
        (["x-gzip"], "gzip"),
        ([" deflate"], "deflate"),
    ],
)
def test_the_coding_of_a_body(values: list[str], coding: Coding | None) -> None:
    assert read_coding(values) == coding


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        (["br"], "br"),
        (["ZSTD"], "ZSTD"),
        (["x-deflate"], "x-deflate"),
        (["gzip, gzip"], "gzip, gzip"),
        (["gzip", "identity"], "gzip, identity"),
        (["gzip;q=1"], "gzip;q=1"),
        (["\xe9"], "\\xe9"),
        (["z" * 99], "z" * 64),
    ],
)
def test_other_and_several_codings_of_a_body_are_refused(values: list[str], shown: str) -> None:
    with pytest.raises(UnsupportedEncodingError) as caught:
        read_coding(values)
    assert str(caught.value) == f"Content-Encoding is '{shown}', expected gzip, deflate or none"
    assert caught.value.headers == {"Accept-Encoding": "gzip, deflate"}


@pytest.mark.parametrize(
    ("values", "coding"),
    [
        (["gzip"], "gzip"),
        (["deflate"], "deflate"),
        (["x-gzip"], "gzip"),
        (["GZIP"], "gzip"),
        ([" gzip ; q=1.000 "], "gzip"),
        (["gzip;q=0.001"], "gzip"),
        (["gzip;Q=0.5"], "gzip"),
        (["gzip, identity"], "gzip"),
        (["gzip", "identity;q=0.5"], "gzip"),
        (["deflate, identity;q=0, *;q=0"], "deflate"),
        (["gzip;q=0, deflate"], "deflate"),
        (["gzip,,"], "gzip"),
    ],
)
def test_a_client_that_names_one_coding_gets_it(values: list[str], coding: Coding) -> None:
    assert choose_coding(values) == coding


@pytest.mark.parametrize(
    "values",
    [
        [],
        [""],
        [","],
        ["identity"],
        ["*"],
        ["*;q=0"],
        ["br"],
        ["gzip;q=0"],
        ["gzip;q=0.000"],
        ["gzip;q=0.5, identity"],
        ["identity;q=1, gzip;q=0.9"],
        ["identity;q=0"],
        ["gzip, deflate"],
        ["gzip", "deflate"],
        ["gzip, deflate, br, zstd"],
        ["gzip;q=1.0, deflate;q=0.1"],
        ["gzip, *"],
        ["gzip;q=2"],
        ["gzip;q=0.1234"],
        ["gzip;q="],
        ["gzip;level=1"],
        ["gzip deflate"],
        ["gz\xefp"],
    ],
    ids=str,
)
def test_every_other_client_gets_answers_as_they_are(values: list[str]) -> None:
    assert choose_coding(values) is None


@given(st.lists(HEADER, max_size=3))
def test_any_headers_are_read_or_refused(values: list[str]) -> None:
    assert choose_coding(values) in (None, "gzip", "deflate")
    with suppress(UnsupportedEncodingError):
        assert read_coding(values) in (None, "gzip", "deflate")


@given(st.lists(st.binary(max_size=200), min_size=1, max_size=3))
def test_what_is_compressed_can_be_undone(parts: list[bytes]) -> None:
    content = b"".join(parts)
    (packed,), headers = compress(
        tuple(memoryview(part) for part in parts), {"Length": "5"}, "gzip"
    )
    assert gzip.decompress(packed) == content
    assert headers == {"Length": "5", "Vary": "Accept-Encoding", "Content-Encoding": "gzip"}
    (packed,), headers = compress((*parts,), {}, "deflate")
    assert zlib.decompress(packed) == content
    assert headers == {"Vary": "Accept-Encoding", "Content-Encoding": "deflate"}


def test_an_answer_without_a_coding_is_left_alone() -> None:
    content, given_headers = (b"con", b"tent"), {"Length": "5"}
    same, headers = compress(content, given_headers, None)
    assert same is content
    assert headers == {"Length": "5", "Vary": "Accept-Encoding"}
    assert given_headers == {"Length": "5"}


def test_the_same_answer_has_the_same_bytes() -> None:
    assert compress((b"content",), {}, "gzip") == compress((b"content",), {}, "gzip")
