"""Bodies are read within bounds, whatever their length says."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import Request
from starlette.types import Message

from service.body import read_body
from service.errors import (
    ClientLeftError,
    InvalidRequestError,
    RequestTooLargeError,
    UnsupportedEncodingError,
)

MAX_BYTES = 10


class Upload:
    """A request whose body comes in chunks; it knows how many were taken."""

    def __init__(self, chunks: Iterable[bytes], **headers: str) -> None:
        self._chunks = list(chunks)
        self.taken = 0
        scope = {
            "type": "http",
            "headers": [
                (name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()
            ],
        }
        self.request = Request(scope, self._receive)

    async def _receive(self) -> Message:
        chunk = self._chunks[self.taken]
        self.taken += 1
        return {
            "type": "http.request",
            "body": chunk,
            "more_body": self.taken < len(self._chunks),
        }


@given(st.lists(st.binary(max_size=4), min_size=1, max_size=6))
async def test_chunks_are_joined_up_to_the_bound(chunks: list[bytes]) -> None:
    whole = b"".join(chunks)
    request = Upload(chunks).request
    if not whole:
        with pytest.raises(InvalidRequestError, match=r"^the request has no body$"):
            await read_body(request, MAX_BYTES)
    elif len(whole) > MAX_BYTES:
        with pytest.raises(RequestTooLargeError) as caught:
            await read_body(request, MAX_BYTES)
        assert str(caught.value) == (
            "the request body is larger than allowed, expected at most 10 bytes "
            "(LIMELIGHT_MAX_REQUEST_BYTES)"
        )
    else:
        assert await read_body(request, MAX_BYTES) == whole


async def test_a_body_of_one_chunk_is_not_copied() -> None:
    chunk = b"0123456789"
    assert await read_body(Upload([chunk]).request, MAX_BYTES) is chunk


async def test_an_announced_length_beyond_the_bound_is_refused_before_reading() -> None:
    upload = Upload([b"x"], content_length="11")
    with pytest.raises(RequestTooLargeError) as caught:
        await read_body(upload.request, MAX_BYTES)
    assert str(caught.value) == (
        "the request body is 11 bytes, expected at most 10 bytes (LIMELIGHT_MAX_REQUEST_BYTES)"
    )
    assert upload.taken == 0


async def test_reading_stops_at_the_bound() -> None:
    upload = Upload([b"12345"] * 1000)
    with pytest.raises(RequestTooLargeError):
        await read_body(upload.request, MAX_BYTES)
    assert upload.taken == 3


@pytest.mark.parametrize("length", ["3", "-1", "many", "\N{SUPERSCRIPT TWO}", ""])
async def test_the_announced_length_is_not_believed(length: str) -> None:
    with pytest.raises(RequestTooLargeError):
        await read_body(Upload([b"0123456789", b"0"], content_length=length).request, MAX_BYTES)


@pytest.mark.parametrize("encoding", ["identity", " Identity ", ""])
async def test_no_coding_has_several_spellings(encoding: str) -> None:
    assert await read_body(Upload([b"x"], content_encoding=encoding).request, MAX_BYTES) == b"x"


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "identity, gzip"])
async def test_a_coded_body_is_refused(encoding: str) -> None:
    with pytest.raises(UnsupportedEncodingError) as caught:
        await read_body(Upload([b"x"], content_encoding=encoding).request, MAX_BYTES)
    assert str(caught.value) == (
        f"Content-Encoding is '{encoding}', expected none: send the body uncompressed"
    )


async def test_a_client_that_leaves_within_its_body_is_no_fault_of_ours() -> None:
    async def receive() -> Message:
        return {"type": "http.disconnect"}

    with pytest.raises(ClientLeftError, match=r"^the client left before its body was whole$"):
        await read_body(Request({"type": "http", "headers": []}, receive), MAX_BYTES)
