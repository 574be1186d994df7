"""What a request's head must be beyond what a parser asks for."""

from collections.abc import Sequence

from service.http.refusals import MAX_PIPELINED, TOO_MANY_PIPELINED


def find_fault(
    version: str, headers: Sequence[tuple[bytes, bytes]], pipelined: int = 0
) -> str | None:
    """Why a request cannot be taken; none where it can.

    RFC 9112, 3.2: without a `Host`, or with two, the answer has to be 400. A proxy that reads one
    and passes on both has checked another request than the one that is answered.

    Args:
        version: of HTTP.
        headers: names, in lower case, and values.
        pipelined: requests before it that wait for their answers, beside the one being answered.
    """
    if pipelined >= MAX_PIPELINED:
        return TOO_MANY_PIPELINED
    hosts = sum(name == b"host" for name, _ in headers)
    if hosts == 1 or (hosts == 0 and version != "1.1"):
        return None
    return f"the request has {hosts} headers 'Host', expected one"
