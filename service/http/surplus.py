"""Connections beyond the bound."""

from collections.abc import Callable
from http import HTTPStatus
from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

from service.http.fields import get_fields
from service.http.refusals import render_refusal
from service.http.replies import render_error
from service.http.request_id import HEADER, choose_id

# Of connections beyond the bound so many may wait for their refusal, or watch the server's health.
MAX_SURPLUS: Final = 64
# An orchestrator that cannot ask would end a server that is merely busy.
OPEN: Final = ("/v2/health/live", "/v2/health/ready", "/metrics")


class Surplus:
    """Answers requests on a connection beyond the bound: 503, but to those about the server.

    Args:
        app: that answers those.
        max_connections: the bound.
        on_refusal: called for each of the others.
    """

    def __init__(self, app: ASGIApp, max_connections: int, on_refusal: Callable[[], None]) -> None:
        self._app = app
        self._max_connections = max_connections
        self._on_refusal = on_refusal

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["path"].endswith(OPEN):
            await self._app(scope, receive, send)
            return
        self._on_refusal()
        headers = {
            "Retry-After": "1",
            "Connection": "close",
            HEADER: choose_id(get_fields(scope)),
        }
        text = describe_surplus(self._max_connections)
        await render_error(text, 503, headers)(scope, receive, send)


def render_surplus(max_connections: int) -> bytes:
    """All that is written on a connection that is refused before it has sent anything."""
    text = describe_surplus(max_connections)
    return render_refusal(HTTPStatus.SERVICE_UNAVAILABLE, text, b"retry-after: 1\r\n")


def describe_surplus(max_connections: int) -> str:
    """Why a connection is refused."""
    return (
        f"{max_connections} connections are open already, expected no more "
        "(LIMELIGHT_MAX_CONNECTIONS); try again later, or keep fewer connections open"
    )
