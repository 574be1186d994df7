"""What Serve's proxies do beside passing requests on: another try where a replica was lost.

    export RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH=deploy.ray.proxy.make_layers

Without it the requests that a replica was computing when it was killed get 500 with a plain text,
and Serve's own errors are plain texts. To ask again is safe: a request changes nothing.
"""

import logging
from collections.abc import Callable, Iterator, MutableMapping
from typing import Any, Final

from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.errors import UnavailableError
from service.http.replies import render_error

MAX_TRIES: Final = 3  # the second replica may be lost, too; then the client is to wait
MAX_KEPT_BYTES: Final = 2**26  # of the bodies of all requests of one proxy that have no answer yet

log = logging.getLogger("ray.serve")


def make_layers() -> list[Middleware]:
    """The layers around a proxy, as Serve asks for them."""
    return [Middleware(SecondTry)]


class SecondTry:
    """Asks another replica where one was lost, and gives Serve's errors the form of ours."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._kept_bytes = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, again if no answer has begun, and say 503 in the end."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        body = KeptBody(receive, self._try_keep)
        try:
            for _ in range(MAX_TRIES):
                if await self._try(scope, body, send):
                    return
                log.warning("A replica was lost with a request that had no answer.")
                if not body.is_whole:
                    break
        finally:
            self._kept_bytes -= body.kept_bytes
        error = UnavailableError("the replica that had this request was lost; try again")
        await render_error(str(error), error.status, dict(error.headers))(scope, receive, send)

    async def _try(self, scope: Scope, body: "KeptBody", send: Send) -> bool:
        """Whether an answer has begun."""
        answer = FirstAnswer(send)
        # In its place the proxy changes headers and path.
        again = dict(scope, headers=list(scope["headers"]), state=dict(scope.get("state", {})))
        try:
            await self._app(again, body.replay(), answer.send)
        except Exception:
            if answer.has_begun:
                raise
        return answer.has_begun

    def _try_keep(self, size_bytes: int) -> bool:
        if self._kept_bytes + size_bytes > MAX_KEPT_BYTES:
            return False
        self._kept_bytes += size_bytes
        return True


class KeptBody:
    """The body of a request, which can be received again.

    Args:
        receive: gives its parts.
        try_keep: whether so many bytes more may be kept.

    Attributes:
        is_whole: whether all that came was kept.
        kept_bytes: how many bytes were.
    """

    def __init__(self, receive: Receive, try_keep: Callable[[int], bool]) -> None:
        self._receive = receive
        self._try_keep = try_keep
        self._kept: list[Message] = []
        self.is_whole = True
        self.kept_bytes = 0

    def replay(self) -> Receive:
        """What receives the body from its beginning."""
        past: Iterator[Message] = iter(list(self._kept))

        async def receive() -> Message:
            for message in past:
                return message
            message = await self._receive()
            self._keep(message)
            return message

        return receive

    def _keep(self, message: Message) -> None:
        size_bytes = len(message.get("body", b""))
        if self.is_whole and self._try_keep(size_bytes):
            self._kept.append(message)
            self.kept_bytes += size_bytes
        else:
            self.is_whole = False
            self._kept.clear()


class FirstAnswer:
    """The answer to one try: that of a replica is passed on, that of the proxy is looked at.

    Every error of a replica is a JSON object; the proxy says all in plain text.

    Attributes:
        has_begun: whether anything was passed on.
    """

    def __init__(self, send: Send) -> None:
        self._send = send
        self._start: MutableMapping[str, Any] | None = None
        self.has_begun = False

    async def send(self, message: Message) -> None:
        """Pass a message on, but for a 500 of the proxy: it says that a replica is lost."""
        if message["type"] == "http.response.start" and is_plain_error(message):
            self._start = message
            return
        if self._start is None:
            self.has_begun = True
            await self._send(message)
        elif self._start["status"] != 500 and not self.has_begun:
            self.has_begun = True
            await self._translate(self._start, message.get("body", b""))

    async def _translate(self, start: Message, text: bytes) -> None:
        kept = {n.decode(): v.decode("latin-1") for n, v in start["headers"] if n in KEPT_HEADERS}
        answer = render_error(text.decode(errors="replace"), start["status"], kept)
        await self._send({**start, "headers": answer.raw_headers})
        await self._send({"type": "http.response.body", "body": answer.body})


KEPT_HEADERS: Final = frozenset({b"retry-after", b"x-request-id"})


def is_plain_error(start: Message) -> bool:
    """Whether an answer that begins is an error in plain text."""
    media_type = Headers(raw=list(start["headers"])).get("content-type", "")
    return start["status"] >= 400 and media_type.startswith("text/plain")
