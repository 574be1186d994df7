"""What a browser is told that it must not do with our answers."""

from typing import Final

from starlette._utils import get_route_path
from starlette.types import ASGIApp, Message, Receive, Scope, Send

Headers = tuple[tuple[bytes, bytes], ...]

API: Final = ("/v1/", "/v2")
DOCS: Final = "/docs"
# https://www.w3.org/TR/CSP3/: scripts, styles and connections of our own origin alone, nothing
# inline, nothing of plug-ins, no frame around it, no form that goes elsewhere.
CSP: Final = (
    "default-src 'self'; base-uri 'none'; frame-ancestors 'none'; object-src 'none'; "
    "form-action 'self'"
)
DOCS_CSP: Final = f"{CSP}; img-src 'self' data:"  # the icons in Swagger UI's style sheet

NO_SNIFFING: Final = (b"x-content-type-options", b"nosniff")
ANSWER: Final[Headers] = (NO_SNIFFING,)
PAGE: Final[Headers] = (
    NO_SNIFFING,
    (b"content-security-policy", CSP.encode()),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
)
DOCS_PAGE: Final[Headers] = tuple(
    (name, DOCS_CSP.encode() if name == b"content-security-policy" else value)
    for name, value in PAGE
)


class SecurityHeaders:
    """Adds them to every answer; to those of the API, which are data, the one that counts there."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on and mark its answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        added = choose_headers(get_route_path(scope))

        async def send_marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                # A new list: that of a response which is sent twice would grow.
                message["headers"] = [*message.get("headers", ()), *added]
            await send(message)

        await self._app(scope, receive, send_marked)


def choose_headers(path: str) -> Headers:
    """The headers of an answer.

    Args:
        path: as the router sees it.
    """
    if path.startswith(API):
        return ANSWER
    return DOCS_PAGE if path == DOCS else PAGE
