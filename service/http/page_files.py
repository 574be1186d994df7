"""The files of the page, which a browser keeps but asks about each time."""

from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope


class PageFiles(StaticFiles):
    """Files with an ETag that a browser has to send back before it uses what it kept.

    Without the header it would guess for how long files are fresh (RFC 9111, 4.2.2), and after an
    upgrade run modules of two versions beside each other.
    """

    async def get_response(self, path: str, scope: Scope) -> Response:
        """A file, or 304 where the browser has it."""
        response = await super().get_response(path, scope)
        response.headers["Cache-Control"] = "no-cache"
        return response
