"""The layer that lets nobody in without a key, before anything else looks at a request."""

from collections.abc import Iterable
from typing import Final

from starlette._utils import get_route_path  # the router's own: the two can never disagree
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from service.http.access import Access
from service.http.key_file import KeyFile
from service.http.keys import Keys
from service.http.replies import render_error

CHALLENGE: Final = {"WWW-Authenticate": "Bearer"}  # RFC 6750, 3
POLICY_VIOLATION: Final = 1008  # RFC 6455, 7.4.1

NO_KEY: Final = "no key came; send one header 'Authorization: Bearer KEY'"
WRONG_KEY: Final = "the key that came is not known here; ask whoever runs this server for one"
WRONG_ROLE: Final = (
    "the key that came has the role infer, which may read and infer; anything else needs a key "
    "with the role admin"
)


class Gate:
    """Answers 401 without a key that is known, and 403 where its role is not enough.

    It decides on method and path alone, never on `Host`, and knows no endpoints: its texts are the
    same whether or not a path is served. The body is not read.
    """

    def __init__(self, app: ASGIApp, keys: Keys | KeyFile, access: Access) -> None:
        self._app = app
        self._keys = keys
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] != "http":  # nothing is served over a WebSocket
            await send({"type": "websocket.close", "code": POLICY_VIOLATION})
        elif refusal := self.check(scope, get_route_path(scope)):
            await refusal(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def check(self, scope: Scope, path: str) -> Response | None:
        """What a request without the right to come in is answered; else the key is noted.

        Args:
            scope: of the request.
            path: as the router sees it.
        """
        need = self._access.find_need(scope["method"], path)
        if need == "nothing":
            return None
        sent = read_key(scope["headers"])
        key = self._keys.find(sent) if sent else None
        if key is None:
            return render_error(WRONG_KEY if sent else NO_KEY, 401, CHALLENGE)
        scope.setdefault("state", {})["key"] = key.label
        if need == "admin" and key.role != "admin":
            return render_error(WRONG_ROLE, 403, {})
        return None


def read_key(headers: Iterable[tuple[bytes, bytes]]) -> bytes | None:
    """The key of the only `Authorization` header; none if there are more, or it has another form.

    RFC 6750, 2.1. Two headers may be read differently by a proxy and by us: neither counts.

    Args:
        headers: of a request, with names in lower case.
    """
    values = [value for name, value in headers if name == b"authorization"]
    if len(values) != 1:
        return None
    scheme, _, key = values[0].partition(b" ")
    return key.strip(b" ") if scheme.lower() == b"bearer" else None
