"""The header `X-Request-Id`, which Serve's proxy adds to every answer, too."""

from typing import Final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

NAME: Final = b"x-request-id"


class SoleRequestId:
    """Leaves the id out of an answer where it is the one that the proxy adds.

    The proxy gives every request an id that has none, and repeats what came in the answer. An id
    that is not fit for a log we replace: then the answer has both.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and its answer without what is said twice."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        added = (NAME, Headers(scope=scope).get("x-request-id", "").encode("latin-1"))

        async def send_once(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = message.get("headers", ())
                message["headers"] = [each for each in headers if tuple(each) != added]
            await send(message)

        await self._app(scope, receive, send_once)
