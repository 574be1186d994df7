"""An id for every request, given back in every answer."""

import re
import uuid
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADER: Final = "X-Request-Id"
FIT: Final = re.compile(r"[A-Za-z0-9._-]{1,128}")


class RequestId:
    """Adds `X-Request-Id` to answers: the client's, if it is fit for a log, or a new one."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on and mark its answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get(HEADER, "")
        request_id = given if FIT.fullmatch(given) else uuid.uuid4().hex
        # For the answer to an unknown fault, which is written outside of this layer.
        scope.setdefault("state", {})["request_id"] = request_id

        async def send_marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)[HEADER] = request_id
            await send(message)

        await self._app(scope, receive, send_marked)
