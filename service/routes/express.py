"""Inference requests, straight from the server to their endpoints.

What a request passes on its way through FastAPI costs more than a small model: its router and its
dependencies 0.17 ms, six layers and what Starlette puts around them as much again (1x16, measured
with the caches as cold as they are between two runs). So the requests that programs send are
answered here, with all that the layers do to them. Those of browsers, and any other, go the long
way; FastAPI's routes stay for them and for the documentation, and lead to the same functions.
"""

import asyncio
import time

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from service.errors import ServiceError
from service.http.cutoff import stop_early
from service.http.fields import get_fields
from service.http.outlet import Outlet, get_outlet
from service.http.replies import render_error, render_fault
from service.http.request_id import FIELD, choose_id
from service.http.request_log import Exchange, write
from service.http.security_headers import NO_SNIFFING
from service.request_facts import STATE as FACTS
from service.request_facts import RequestFacts
from service.routes.answers import BUFFERED_BYTES, AnswerResponse, Pairs, get_parts
from service.routes.entrance import Endpoint, Entrance
from service.routes.prompt import Prompt
from service.state import State


class Express:
    """In front of an application: answers inference requests, and passes all others on.

    Args:
        app: the application, which answers the same requests in the same way.
        state: of the application.
        entrance: finds those that are answered here.

    Attributes:
        prompt: answers some of them without a task.
    """

    def __init__(self, app: ASGIApp, state: State, entrance: Entrance) -> None:
        self._app = app
        self._state = state
        self._entrance = entrance
        self._is_logged = state.settings.log_requests
        self.prompt = Prompt(state, entrance)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        outlet = get_outlet(scope) if scope["type"] == "http" else None
        if outlet is None or (endpoint := self._entrance.find(scope)) is None:
            # Found before, perhaps, and its right to come in went meanwhile: the log names neither.
            for name in ("route", "path_params"):
                scope.pop(name, None)
            await self._app(scope, receive, send)
            return
        started_s, exchange, state = time.perf_counter(), Exchange(), scope["state"]
        state["request_id"] = choose_id(get_fields(scope))
        state[FACTS] = RequestFacts()
        try:
            await self._exchange(exchange, endpoint, Request(scope, receive), outlet)
        finally:
            if self._is_logged:
                total_ms = (time.perf_counter() - started_s) * 1000
                write(scope, exchange, scope["path"], total_ms)

    async def _exchange(
        self, exchange: Exchange, endpoint: Endpoint, request: Request, outlet: Outlet
    ) -> None:
        """Send the answer to a request, whatever comes of it."""
        added = (NO_SNIFFING, (FIELD, request.scope["state"]["request_id"].encode()))
        try:
            response = await self._answer(endpoint, request)
        except Exception as fault:
            exchange.error = f"{type(fault).__name__}: {fault}"
            await self._send(exchange, render_fault(), added, outlet)
            raise
        await self._send(exchange, response, added, outlet)

    async def _send(
        self, exchange: Exchange, response: Response, added: Pairs, outlet: Outlet
    ) -> None:
        status, parts = response.status_code, get_parts(response)
        exchange.note_response(status, parts)
        headers = (*response.raw_headers, *added)
        try:
            # Of a client that takes no answers, the next request waits.
            if exchange.response_bytes <= BUFFERED_BYTES and outlet.has_room():
                outlet.answer(status, headers, parts)
            else:
                await outlet.answer_large(status, headers, parts)
        finally:
            if isinstance(response, AnswerResponse):
                response.on_taken()
        exchange.is_whole = True

    async def _answer(self, endpoint: Endpoint, request: Request) -> Response:
        try:
            return await endpoint(request, self._state)
        except ServiceError as error:
            return render_error(str(error), error.status, dict(error.headers))
        except asyncio.CancelledError:
            return stop_early()
