"""Requests that a page of another site makes a browser send."""

from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from service.http.access import SAFE
from service.http.origins import SETTING
from service.http.replies import render_error

OWN: Final = frozenset({"same-origin", "none"})
ANOTHER_SITE: Final = (
    "a page of another site sent this request; list its origin in "
    f"{SETTING}, or send the request from a program"
)


class CrossSite:
    """Refuses requests that change something and come from a page of another site.

    Without keys a page on the internet could reach a server that listens on the loopback address
    alone, through the browser of whoever opens it. The rules are those of Go's
    https://pkg.go.dev/net/http#CrossOriginProtection; programs send none of these headers.
    """

    def __init__(self, app: ASGIApp, origins: tuple[str, ...] = ()) -> None:
        self._app = app
        self._origins = frozenset(origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http" or scope["method"] in SAFE or self._is_own(Headers(scope=scope)):
            await self._app(scope, receive, send)
        else:
            await render_error(ANOTHER_SITE, 403, {})(scope, receive, send)

    def _is_own(self, headers: Headers) -> bool:
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        if origin in self._origins:
            return True
        if site is not None:
            return site in OWN
        # Browsers leave Sec-Fetch-Site out where a page came over plain HTTP from another machine.
        return origin is None or is_of_host(origin, headers.get("host", ""))


def is_of_host(origin: str, host: str) -> bool:
    """Whether an origin has the host and port that a header `Host` names; ``null`` has none."""
    try:
        authority = urlsplit(origin).netloc
    except ValueError:  # brackets that hold no address
        return False
    return bool(authority) and authority == host
