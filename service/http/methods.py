"""The methods that are served at a path."""

from collections.abc import Sequence
from typing import Final

from starlette.routing import BaseRoute, Match, Mount
from starlette.types import Scope

METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


def list_methods(routes: Sequence[BaseRoute], scope: Scope) -> list[str]:
    """All methods of a path, for the header `Allow` (RFC 9110, 10.2.1).

    The router itself names those of the first endpoint that has the path, and a path may have an
    endpoint for each method. Mounted applications know their own.

    Args:
        routes: of the application.
        scope: of the request.
    """
    path = {name: scope[name] for name in ("type", "path", "root_path")}
    own = [route for route in routes if not isinstance(route, Mount)]
    return [
        method
        for method in METHODS
        if any(route.matches({**path, "method": method})[0] is Match.FULL for route in own)
    ]
