"""A small ASGI application that reads bodies as the endpoints do, over real connections."""

import weakref
from typing import Any

import numpy as np
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from service.errors import ServiceError
from service.http.departure import work_while_present
from service.http.holdings import Holdings
from service.http.inlet import Inlet, get_inlet
from service.http.replies import render_error
from service.settings import Settings


class Reader:
    """Answers how many bytes came, or why they were not read.

    Args:
        settings: those of its holdings that are not the defaults.

    Attributes:
        holdings: of the bodies.
        bodies: that were read.
        inlets: of the requests that came; none where a body comes the old way.
        errors: of bodies that were not read.
        left: the arrays of the bodies that were read past the parser, while anything holds them.
    """

    def __init__(self, **settings: Any) -> None:
        self.holdings = Holdings(Settings.model_construct(**Settings().model_dump() | settings))
        self.bodies: list[bytes] = []
        self.inlets: list[Inlet | None] = []
        self.errors: list[str] = []
        self.left: list[weakref.ref[Any]] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        request = Request(scope, receive)
        self.inlets.append(get_inlet(scope))
        try:
            await self._read(request)
        except ServiceError as error:
            self.errors.append(str(error))
            answer = render_error(str(error), error.status, dict(error.headers))
            await answer(scope, receive, send)
        else:
            await PlainTextResponse(str(len(self.bodies[-1])))(scope, receive, send)

    async def _read(self, request: Request) -> None:
        with self.holdings.open() as held:
            body = await work_while_present(request, held.read(request))
            self.bodies.append(bytes(body))
            if isinstance(body, memoryview) and isinstance(body.obj, np.ndarray):
                self.left.append(weakref.ref(body.obj))
