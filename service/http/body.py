"""Request bodies, read within bounds."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Final

from starlette.requests import ClientDisconnect, Request

from service.errors import (
    ClientLeftError,
    InvalidRequestError,
    RequestTimeoutError,
    RequestTooLargeError,
)
from service.http.budget import Account
from service.http.compression import read_coding
from service.http.inflation import Inflation

# Deflate packs at most 1032 bytes into one: less than this is inflated within 1 ms, whatever it is,
# while a hop to a thread costs 0.1 ms.
INLINE_BYTES: Final = 256
# Parts below this are joined as they come.
SMALL_BYTES: Final = 4096


async def read_body(
    request: Request,
    max_bytes: int,
    *,
    required: bool = True,
    timeout_s: float | None = None,
    account: Account | None = None,
) -> bytes:
    """Read the whole body, and inflate it if it is compressed.

    Args:
        request: not read yet.
        max_bytes: bound of the body, both as it comes and after inflating.
        required: whether there must be one.
        timeout_s: for which the client is waited for, in all.
        account: on which the body is held; where it has no room nothing more is read meanwhile.

    Raises:
        RequestTimeoutError: if the body does not come within `timeout_s`.
        UnavailableError: if the account gets no room in time.
        RequestTooLargeError: if more than `max_bytes` are announced or come.
        UnsupportedEncodingError: if the body has a content coding that is not read.
        InvalidRequestError: if the body is not in its coding, or is absent.
        ClientLeftError: if the client leaves before the end.
    """
    coding = read_coding(request.headers.getlist("content-encoding"))
    check_announced(request.headers.get("content-length", "0"), max_bytes)
    parts = receive(request, max_bytes, timeout_s)
    if coding is not None:
        parts = inflate(parts, Inflation(coding, max_bytes))
    chunks: list[bytes | bytearray] = []
    async for part in parts:
        if not part:  # Starlette ends with an empty part, which would make one part two
            continue
        if account is not None and not account.try_grow(len(part)):
            await account.grow(len(part))
        add_part(chunks, part)
    if account is not None:
        account.seal()
    if required and not chunks:
        raise InvalidRequestError("the request has no body")
    return chunks[0] if len(chunks) == 1 and isinstance(chunks[0], bytes) else b"".join(chunks)


def add_part(chunks: list[bytes | bytearray], part: bytes) -> None:
    """Add a part to those of a body, small ones to each other.

    Each object costs 40 bytes beside its own: a client that sends byte by byte would take forty
    times the memory that is counted for it.
    """
    if len(part) >= SMALL_BYTES:
        chunks.append(part)
    elif chunks and isinstance(chunks[-1], bytearray):
        chunks[-1] += part
    else:
        chunks.append(bytearray(part) if chunks else part)


async def receive(
    request: Request, max_bytes: int, timeout_s: float | None
) -> AsyncIterator[bytes]:
    """The parts of a body, as they come.

    Raises:
        RequestTooLargeError: if they are more than `max_bytes` together.
        RequestTimeoutError: if the client is waited for longer than `timeout_s`, in all.
        ClientLeftError: if the client leaves before the end.
    """
    size, waited_s, loop = 0, 0.0, asyncio.get_running_loop()
    async with aclosing(request.stream()) as stream:
        while True:
            began_s = loop.time()
            try:
                async with asyncio.timeout(timeout_s and timeout_s - waited_s):
                    part = await anext(stream, None)
            except ClientDisconnect:
                raise ClientLeftError("the client left before its body was whole") from None
            except TimeoutError:
                raise too_slow(size, timeout_s) from None
            if part is None:
                return
            # Only this: the reader of the parts may be waiting for room.
            waited_s += loop.time() - began_s
            size += len(part)
            if size > max_bytes:
                raise too_large("larger than allowed", max_bytes)
            yield part


async def inflate(parts: AsyncIterator[bytes], inflation: Inflation) -> AsyncIterator[bytes]:
    """The parts of a compressed body, inflated as they come, beside the event loop.

    Raises:
        InvalidRequestError: if the body is not in its coding.
        RequestTooLargeError: if it is larger than the bound after inflating.
    """
    async for part in parts:
        pieces = inflation.inflate(part)
        if len(part) < INLINE_BYTES:
            for piece in pieces:
                yield piece
            continue
        # Piece by piece: whoever takes them may have to wait for room.
        while (inflated := await asyncio.to_thread(next, pieces, None)) is not None:
            yield inflated
    inflation.finish()


def check_announced(text: str, max_bytes: int) -> None:
    """Refuse a body by its Content-Length, before it is read.

    Raises:
        RequestTooLargeError: if it announces more than `max_bytes`.
    """
    if text.isascii() and text.isdigit() and int(text) > max_bytes:
        raise too_large(f"{text} bytes", max_bytes)


def too_slow(came_bytes: int, timeout_s: float | None) -> RequestTimeoutError:
    """The error for a body that does not come in time."""
    return RequestTimeoutError(
        f"{came_bytes} bytes of the request body came within {timeout_s:g} s, expected all of it "
        "(LIMELIGHT_BODY_TIMEOUT_S)"
    )


def too_large(came: str, max_bytes: int) -> RequestTooLargeError:
    """The error for a body beyond the bound."""
    return RequestTooLargeError(
        f"the request body is {came}, expected at most {max_bytes} bytes "
        "(LIMELIGHT_MAX_REQUEST_BYTES)"
    )
