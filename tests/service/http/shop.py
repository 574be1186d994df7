"""A small ASGI application that answers over real connections."""

import asyncio
import threading

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import Receive, Scope, Send

from service.errors import ClientLeftError
from service.http.departure import Stage, get_presence, work_while_present

TOO_LARGE = b'{"error":"too large"}'


class Shop:
    """What the tests of connections ask for, by path.

    Attributes:
        heads: headers of the requests that came.
        begun: how many requests to `/work` have been read and are being worked on.
        ended: how the work of each ended.
        release: ends the work.
    """

    def __init__(self, stage: Stage = "work") -> None:
        self.heads: list[dict[str, str]] = []
        self.begun = 0
        self.ended: list[str] = []
        self.release = threading.Event()
        self._stage = stage

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        request = Request(scope, receive)
        self.heads.append(dict(request.headers))
        response = await self._answer(request)
        await response(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        match request.url.path:
            case "/early":
                return Response(TOO_LARGE, 413, media_type="application/json")
            case "/early-close":
                return Response(TOO_LARGE, 413, {"Connection": "close"})
            case "/large":
                await request.body()
                return Response(bytes(int(request.url.query)))
            case "/work":
                return await self._work(request)
        return PlainTextResponse(str(len(await request.body())))

    async def _work(self, request: Request) -> Response:
        try:
            await work_while_present(request, self._compute(request))
        except ClientLeftError as error:
            self.ended.append(str(error))
            return Response(status_code=400)
        self.ended.append("done")
        return PlainTextResponse("done")

    async def _compute(self, request: Request) -> None:
        await request.body()
        get_presence(request.scope).stage = self._stage
        self.begun += 1
        while not self.release.is_set():  # noqa: ASYNC110 - the test sets it from its own thread
            await asyncio.sleep(0.01)
