"""An id for every request, given back in every answer."""

import random
import re
from typing import Final

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.http.fields import Fields, get_fields
from service.http.trace_context import read_trace_id

HEADER: Final = "X-Request-Id"
FIELD: Final = b"x-request-id"
FIT: Final = re.compile(r"[A-Za-z0-9._-]{1,128}")


class RequestId:
    """Adds `X-Request-Id` to answers: the client's, that of its trace, or a new one."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on and mark its answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = choose_id(get_fields(scope))
        # For the answer to an unknown fault, which is written outside of this layer.
        scope.setdefault("state", {})["request_id"] = request_id

        async def send_marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)[HEADER] = request_id
            await send(message)

        await self._app(scope, receive, send_marked)


def choose_id(fields: Fields) -> str:
    """The client's id if it is fit for a log, else the id of its trace, else a new one."""
    given = fields.get(FIELD)
    if given and FIT.fullmatch(given):
        return given
    trace = fields.get(b"traceparent")
    # As many random bits as a trace id has; a UUID, which says so, takes five times as long.
    # They need not be secret, and a system call would give away the interpreter's lock.
    return (trace and read_trace_id(trace)) or f"{random.getrandbits(128):032x}"
