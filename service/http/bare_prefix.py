"""A request for the prefix of a proxy and nothing behind it."""

from starlette._utils import get_route_path
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send


class BarePrefix:
    """Leads whoever asks for `/attn`, where that is the prefix, to the page at `/attn/`.

    The links of the page are relative, so its path has to end with a slash. This is the innermost
    layer: the answer is logged, marked and guarded like any other.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer where the page is."""
        if scope["type"] != "http" or get_route_path(scope):
            await self._app(scope, receive, send)
            return
        query = scope["query_string"].decode("latin-1")
        address = f"{scope['root_path']}/{query and '?'}{query}"
        await RedirectResponse(address)(scope, receive, send)
