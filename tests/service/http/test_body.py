"""Bodies are read within bounds, whatever their length says."""

import asyncio
import gzip
import re
import threading
import tracemalloc
import zlib
from collections.abc import Iterable, Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import Request
from starlette.types import Message

from service.errors import (
    ClientLeftError,
    InvalidRequestError,
    RequestTimeoutError,
    RequestTooLargeError,
    UnsupportedEncodingError,
)
from service.http.body import INLINE_BYTES, read_body
from service.http.budget import Budget
from service.http.inflation import STEP_BYTES, Inflation

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


@pytest.mark.parametrize("encoding", ["br", "identity, gzip"])
async def test_a_coding_that_is_not_read_is_refused_before_reading(encoding: str) -> None:
    upload = Upload([b"x"], content_encoding=encoding)
    with pytest.raises(UnsupportedEncodingError) as caught:
        await read_body(upload.request, MAX_BYTES)
    assert str(caught.value) == (
        f"Content-Encoding is '{encoding}', expected gzip, deflate or none"
    )
    assert upload.taken == 0


@given(st.binary(min_size=1, max_size=4000), st.integers(1, 3000))
async def test_compressed_bodies_of_any_parts_are_inflated(data: bytes, part_bytes: int) -> None:
    for coding, packed in (("gzip", gzip.compress(data)), ("Deflate", zlib.compress(data))):
        parts = [packed[i : i + part_bytes] for i in range(0, len(packed), part_bytes)]
        request = Upload(parts, content_encoding=coding).request
        assert await read_body(request, 5000) == data


async def test_reading_stops_where_the_inflated_body_passes_the_bound() -> None:
    packed = gzip.compress(bytes(100_000))
    upload = Upload(
        [packed[i : i + 10] for i in range(0, len(packed), 10)], content_encoding="gzip"
    )
    with pytest.raises(RequestTooLargeError) as caught:
        await read_body(upload.request, 5000)
    assert str(caught.value) == (
        "the request body is larger than allowed after inflating, expected at most 5000 bytes "
        "(LIMELIGHT_MAX_REQUEST_BYTES)"
    )
    assert 1 < upload.taken < len(packed) // 10


async def test_the_bound_holds_for_the_compressed_bytes_too() -> None:
    empty = gzip.compress(b"")
    with pytest.raises(RequestTooLargeError, match=r"^the request body is larger than allowed, "):
        await read_body(Upload([empty] * 3, content_encoding="gzip").request, 2 * len(empty))


@pytest.mark.parametrize("headers", [{}, {"content_encoding": "gzip"}])
async def test_a_body_may_be_absent_where_it_is_not_required(headers: dict[str, str]) -> None:
    assert await read_body(Upload([b""], **headers).request, MAX_BYTES, required=False) == b""


@pytest.mark.parametrize("chunk", [b"", gzip.compress(b"", mtime=0)], ids=["absent", "empty"])
async def test_an_empty_body_is_none_compressed_or_not(chunk: bytes) -> None:
    with pytest.raises(InvalidRequestError, match=r"^the request has no body$"):
        await read_body(Upload([chunk], content_encoding="gzip").request, 100)


async def test_a_large_part_is_inflated_beside_the_event_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    has_turned = threading.Event()

    class Waiting(Inflation):
        def inflate(self, data: bytes) -> Iterator[bytes]:
            assert has_turned.wait(10)
            yield from super().inflate(data)

    monkeypatch.setattr("service.http.body.Inflation", Waiting)
    data = np.random.default_rng(1).bytes(2 * INLINE_BYTES)
    request = Upload([gzip.compress(data)], content_encoding="gzip").request
    asyncio.get_running_loop().call_later(0.01, has_turned.set)
    assert await read_body(request, 3 * INLINE_BYTES) == data


async def test_a_client_that_leaves_within_its_body_is_no_fault_of_ours() -> None:
    async def receive() -> Message:
        return {"type": "http.disconnect"}

    with pytest.raises(ClientLeftError, match=r"^the client left before its body was whole$"):
        await read_body(Request({"type": "http", "headers": []}, receive), MAX_BYTES)


async def test_a_body_that_comes_too_slowly_is_408() -> None:
    async def receive() -> Message:
        await asyncio.sleep(0.03)
        return {"type": "http.request", "body": b"x", "more_body": True}

    request = Request({"type": "http", "headers": []}, receive)
    with pytest.raises(RequestTimeoutError) as caught:
        await read_body(request, 1000, timeout_s=0.1)
    text = str(caught.value)
    assert re.fullmatch(
        r"[0-4] bytes of the request body came within 0\.1 s, expected all of it "
        r"\(LIMELIGHT_BODY_TIMEOUT_S\)",
        text,
    )
    assert dict(caught.value.headers) == {"Connection": "close"}


async def test_the_time_that_a_body_waits_for_room_is_not_its_clients() -> None:
    budget = Budget("request bodies", "LIMELIGHT_X", 4, 0, 10)
    first = budget.open()
    assert first.try_grow(3)
    with budget.open() as account:
        upload = Upload([b"ab", b"cd"])
        reading = asyncio.create_task(
            read_body(upload.request, MAX_BYTES, timeout_s=0.05, account=account)
        )
        await asyncio.sleep(0.15)
        assert upload.taken == 1, "nothing more is read meanwhile"
        first.close()
        assert await reading == b"abcd"
        assert account.is_whole


async def test_a_body_that_comes_byte_by_byte_takes_little_more_memory_than_its_bytes() -> None:
    parts = 200_000
    request = Upload([b"x"] * parts).request
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        body = await read_body(request, parts)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert body == b"x" * parts
    assert peak - before < 4 * parts


async def test_no_more_is_inflated_than_there_is_room_for() -> None:
    budget = Budget("request bodies", "LIMELIGHT_X", STEP_BYTES, 0, 10)
    other = budget.open()
    assert other.try_grow(1)
    taken = 0

    class Counting(Inflation):
        def inflate(self, data: bytes) -> Iterator[bytes]:
            nonlocal taken
            for piece in super().inflate(data):
                taken += len(piece)
                yield piece

    packed = zlib.compress(bytes(8 * STEP_BYTES))
    request = Upload([packed], content_encoding="deflate").request
    with pytest.MonkeyPatch.context() as patch, budget.open() as account:
        patch.setattr("service.http.body.Inflation", Counting)
        reading = asyncio.create_task(read_body(request, 9 * STEP_BYTES, account=account))
        await asyncio.sleep(0.1)
        assert taken <= STEP_BYTES
        other.close()
        assert await reading == bytes(8 * STEP_BYTES)
