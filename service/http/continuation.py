"""Clients that wait to be told to send their body (Expect: 100-continue)."""

from collections.abc import Callable

from uvicorn._types import ASGIReceiveEvent
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle


def close_unless_continued(cycle: RequestResponseCycle, may_keep_alive: Callable[[], bool]) -> None:
    """Let an answer end the connection, unless the client was told to send its body first.

    Nobody can tell whether a client that was answered instead sends its body all the same: what
    comes next would be read as a body or as a request (RFC 9110, 10.1.1).

    Args:
        cycle: of the request.
        may_keep_alive: whether the connection stays open after an answer, when that is decided.
    """
    keep_alive, cycle.keep_alive = cycle.keep_alive, False

    async def receive() -> ASGIReceiveEvent:
        # uvicorn's `receive` writes "100 Continue" the first time it is called.
        if cycle.waiting_for_100_continue:
            cycle.keep_alive = keep_alive and may_keep_alive()
        return await RequestResponseCycle.receive(cycle)

    cycle.receive = receive  # type: ignore[method-assign] # of this request alone
