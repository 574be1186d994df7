"""Errors of connections, written without any application."""

import uuid
from http import HTTPStatus
from typing import Final

import orjson

NOT_HTTP: Final = "the request is not valid HTTP"
MAX_HEAD_BYTES: Final = 65536
HEAD_TOO_LARGE: Final = (
    f"the request line and headers are larger than {MAX_HEAD_BYTES} bytes, expected fewer; "
    "options of many bytes go into the body"
)
MAX_PIPELINED: Final = 64
TOO_MANY_PIPELINED: Final = (
    f"more than {MAX_PIPELINED} requests were sent ahead of their answers, expected fewer: read "
    "the answers, or open more connections"
)


def render_refusal(status: HTTPStatus, text: str, headers: bytes = b"") -> bytes:
    """A whole answer, after which the connection is closed.

    Args:
        status: of the answer.
        text: of the error.
        headers: more of them, each with its line's end.
    """
    body = orjson.dumps({"error": text})
    return (
        b"HTTP/1.1 %d %s\r\n"
        b"content-type: application/json\r\n"
        b"content-length: %d\r\n"
        b"x-request-id: %s\r\n"
        b"%s"
        b"connection: close\r\n\r\n%s"
    ) % (status, status.phrase.encode(), len(body), uuid.uuid4().hex.encode(), headers, body)
