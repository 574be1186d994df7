"""Pages of other sites: which may ask this server from a browser."""

import re
from typing import Final

from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.types import ASGIApp

from service.errors import StartError
from service.http.replies import render_error

SETTING: Final = "LIMELIGHT_CORS_ORIGINS"
METHODS: Final = ("GET", "POST")
SENT: Final = (
    "Authorization",
    "Content-Encoding",
    "Inference-Header-Content-Length",
    "Traceparent",
    "X-Request-Id",
)
READ: Final = (
    "Inference-Header-Content-Length",
    "Limelight-Converted",
    "Limelight-Graph",
    "Retry-After",
    "Server-Timing",
    "X-Request-Id",
)
# RFC 6454, 7: as browsers send it, in lower case and without a slash at the end.
ORIGIN: Final = re.compile(r"https?://([a-z0-9._-]+|\[[0-9a-f:]+\])(:[0-9]{1,5})?")


def read_origins(text: str) -> tuple[str, ...]:
    """The origins of a setting, with commas between.

    Raises:
        StartError: if one is not exactly an origin; neither ``*`` nor ``null`` is.
    """
    origins = tuple(part.strip() for part in text.split(",") if part.strip())
    for origin in origins:
        if not ORIGIN.fullmatch(origin):
            raise StartError(
                f"{SETTING} has {origin!a}, expected origins such as https://example.com or "
                "http://localhost:3000, in lower case, without a path, with commas between"
            )
    return origins


class Cors(CORSMiddleware):
    """Lets pages of listed origins ask and read: https://fetch.spec.whatwg.org/#http-cors-protocol.

    It stands before the keys, since a browser sends none when it asks whether it may ask. That
    question is answered here and never passed on, so that it opens nothing.
    """

    def __init__(self, app: ASGIApp, origins: tuple[str, ...]) -> None:
        super().__init__(
            app,
            allow_origins=origins,
            allow_methods=METHODS,
            allow_headers=SENT,
            expose_headers=READ,
        )

    def preflight_response(self, request_headers: Headers) -> Response:
        """Whether a page may ask; a refusal has the form of all errors."""
        response = super().preflight_response(request_headers)
        if response.status_code == 200:
            return response
        text = (
            f"origin {request_headers['origin'][:256]!a} may not send this: origins are listed in "
            f"{SETTING}; methods are {', '.join(METHODS)}; headers beside the usual ones are "
            f"{', '.join(SENT)}"
        )
        return render_error(text, 403, {"Vary": response.headers["Vary"]})
