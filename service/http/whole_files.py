"""Requests for a part of a file, which are answered with the whole."""

from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.http.access import READ

ASKED: Final = frozenset({b"range", b"if-range"})
OFFERED: Final = b"accept-ranges"


class WholeFiles:
    """Forgets what part of an answer is asked for, as a server may (RFC 9110, 14.2).

    What is served is small. Starlette refuses ranges that it cannot read in another form than that
    of our errors, and has once read them slowly (CVE-2025-62727).
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on without its ranges, and an answer without the offer of any."""
        if scope["type"] != "http" or scope["method"] not in READ:
            await self._app(scope, receive, send)
            return
        # In its place: other layers read what the router writes into the scope.
        scope["headers"] = [header for header in scope["headers"] if header[0] not in ASKED]

        async def send_without_offer(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = message.get("headers", ())
                message["headers"] = [header for header in headers if header[0] != OFFERED]
            await send(message)

        await self._app(scope, receive, send_without_offer)
