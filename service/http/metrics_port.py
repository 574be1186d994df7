"""The port of LIMELIGHT_METRICS_PORT, where `/metrics` is all there is."""

from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

from service.http.budget import Account
from service.http.outlet import Outlet
from service.http.prompting import Answerer, Outcome
from service.http.replies import render_error
from service.http.request_id import RequestId

PATH: Final = "/metrics"


class MetricsPort:
    """Lets nothing but `/metrics` through to the application from one of the server's ports.

    One uvicorn server listens on both: one event loop, one set of bounds, one way to stop.

    Args:
        app: whose other paths are for the other port.
        port: of the metrics.
        answerer: of requests to the other port.

    Attributes:
        waiting: how many of those wait for their bodies.
        buffers: memory for their bodies.
    """

    def __init__(self, app: ASGIApp, port: int, answerer: Answerer) -> None:
        self._app = app
        self._port = port
        self._answerer = answerer
        self._refuse = RequestId(refuse)
        self.waiting = 0
        self.buffers = answerer.buffers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        is_refused = scope["type"] == "http" and self._is_here(scope) and scope["path"] != PATH
        await (self._refuse if is_refused else self._app)(scope, receive, send)

    def is_for(self, scope: Scope, size_bytes: int) -> bool:
        """Whether a request may be answered at once, by its head; none to the metrics is."""
        return not self._is_here(scope) and self._answerer.is_for(scope, size_bytes)

    def open_account(self) -> Account:
        """An account for a body."""
        return self._answerer.open_account()

    def answer(self, scope: Scope, body: memoryview, outlet: Outlet, *, is_alone: bool) -> Outcome:
        """Answer a request whose body is whole, or begin to."""
        return self._answerer.answer(scope, body, outlet, is_alone=is_alone)

    def _is_here(self, scope: Scope) -> bool:
        # The address of the socket that took the connection; no client chooses it.
        return bool(scope["server"][1] == self._port)


async def refuse(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer that there is nothing."""
    text = f"nothing is served at {scope['path']}, this port serves {PATH} alone"
    await render_error(text, 404, {})(scope, receive, send)
