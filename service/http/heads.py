"""What a request's head must be beyond what a parser asks for."""

from collections.abc import Sequence
from http import HTTPStatus
from typing import NamedTuple

from service.http.refusals import MAX_PIPELINED, TOO_MANY_PIPELINED


class Fault(NamedTuple):
    """Why a request cannot be taken, and the status that says so."""

    status: HTTPStatus
    text: str


def find_fault(
    version: str, headers: Sequence[tuple[bytes, bytes]], pipelined: int = 0
) -> Fault | None:
    """Why a request cannot be taken; none where it can.

    RFC 9112, 3.2: without a `Host`, or with two, the answer has to be 400. A proxy that reads one
    and passes on both has checked another request than the one that is answered. And 6.1: a
    transfer coding that is not understood should be answered with 501; to the parser, what is
    chunked last is chunked, and the codings below it would be taken for the body.

    Args:
        version: of HTTP.
        headers: names, in lower case, and values.
        pipelined: requests before it that wait for their answers, beside the one being answered.
    """
    if pipelined >= MAX_PIPELINED:
        return Fault(HTTPStatus.BAD_REQUEST, TOO_MANY_PIPELINED)
    hosts = 0
    for name, value in headers:
        if name == b"host":
            hosts += 1
        elif name == b"transfer-encoding" and value.strip().lower() != b"chunked":
            return refuse_coding(value)
    if hosts == 1 or (hosts == 0 and version != "1.1"):
        return None
    text = f"the request has {hosts} headers 'Host', expected one"
    return Fault(HTTPStatus.BAD_REQUEST, text)


def refuse_coding(value: bytes) -> Fault:
    """The fault of a transfer coding that is not offered."""
    text = (
        f"header Transfer-Encoding is {value.decode('latin-1')[:64]!a}, expected chunked alone; "
        "compress with Content-Encoding"
    )
    return Fault(HTTPStatus.NOT_IMPLEMENTED, text)
