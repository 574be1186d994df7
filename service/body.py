"""Request bodies, read within bounds."""

from collections.abc import AsyncIterator

from starlette.requests import ClientDisconnect, Request

from service.errors import (
    ClientLeftError,
    InvalidRequestError,
    RequestTooLargeError,
    UnsupportedEncodingError,
)


async def read_body(request: Request, max_bytes: int) -> bytes:
    """Read the whole body.

    Args:
        request: not read yet.
        max_bytes: bound of the body.

    Raises:
        RequestTooLargeError: if more than `max_bytes` are announced or come.
        UnsupportedEncodingError: if the body has a content coding.
        ClientLeftError: if the client leaves before the end.
    """
    check_encoding(request.headers.get("content-encoding", "identity"))
    announced = request.headers.get("content-length", "0")
    if announced.isascii() and announced.isdigit() and int(announced) > max_bytes:
        raise too_large(announced, max_bytes)
    chunks: list[bytes] = []
    size = 0
    async for chunk in receive(request):
        size += len(chunk)
        if size > max_bytes:
            raise too_large("larger", max_bytes)
        if chunk:  # Starlette ends with an empty one, which would make one chunk two
            chunks.append(chunk)
    if not size:
        raise InvalidRequestError("the request has no body")
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


async def receive(request: Request) -> AsyncIterator[bytes]:
    """The parts of a body, as they come.

    Raises:
        ClientLeftError: if the client leaves before the end.
    """
    try:
        async for chunk in request.stream():
            yield chunk
    except ClientDisconnect:
        raise ClientLeftError("the client left before its body was whole") from None


def check_encoding(encoding: str) -> None:
    """Accept bodies without content coding.

    Raises:
        UnsupportedEncodingError: for any other.
    """
    if encoding.strip().lower() not in ("", "identity"):
        raise UnsupportedEncodingError(
            f"Content-Encoding is {encoding[:64]!a}, expected none: send the body uncompressed"
        )


def too_large(came: str, max_bytes: int) -> RequestTooLargeError:
    """The error for a body beyond the bound."""
    size = f"{came} bytes" if came.isdigit() else f"{came} than allowed"
    return RequestTooLargeError(
        f"the request body is {size}, expected at most {max_bytes} bytes "
        "(LIMELIGHT_MAX_REQUEST_BYTES)"
    )
