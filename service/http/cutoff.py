"""Requests that are cut off because the server stops: an answer all the same."""

import asyncio

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.errors import UnavailableError
from service.http.replies import render_error


class Cutoff:
    """Answers 503 where uvicorn cancels a request at the end of its time to stop.

    Left alone, the cancellation would end in a plain text 500 and a traceback in the log.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and answer it if it is cancelled before its answer began."""
        has_begun = False

        async def watch(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        try:
            await self._app(scope, receive, watch)
        except asyncio.CancelledError:
            if scope["type"] != "http" or has_begun:
                raise
            await stop_early()(scope, receive, send)


def stop_early() -> Response:
    """The answer to a request that is cut off."""
    error = UnavailableError("the server stopped before the request was answered")
    return render_error(str(error), error.status, dict(error.headers))
