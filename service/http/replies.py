"""The body of every error."""

from typing import Final

import orjson
from starlette.responses import Response

MAX_ERROR_CHARACTERS: Final = 1000


def render_error(text: str, status: int, headers: dict[str, str]) -> Response:
    """The error body of the Open Inference Protocol; its Content-Type has no parameters."""
    # Names that clients chose are part of the text, and may be as long as a body.
    if len(text) > MAX_ERROR_CHARACTERS:
        text = f"{text[: MAX_ERROR_CHARACTERS // 2]} ... {text[-MAX_ERROR_CHARACTERS // 2 :]}"
    # A name that a client escaped by halves ("\\ud800") cannot be written as UTF-8.
    body = orjson.dumps({"error": text.encode(errors="backslashreplace").decode()})
    return Response(body, status, headers | {"Content-Type": "application/json"})


def render_fault(headers: dict[str, str] | None = None) -> Response:
    """The error body where the server is at fault: what went wrong stands in its log alone."""
    return render_error("the server failed; its log says why", 500, headers or {})
