"""Which requests are inference requests as programs send them."""

from collections.abc import Awaitable, Callable
from functools import lru_cache
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Scope

from service.http.fields import get_fields
from service.http.gate import Gate
from service.routes import attention, infer
from service.state import State

Endpoint = Callable[[Request, State], Awaitable[Response]]
# With the route, and the parts of the path that it names.
Goal = tuple[Endpoint, Route, dict[str, str | None]]

# Of those that are remembered; a longer one goes the long way.
MAX_PATHS: Final = 128
MAX_PATH_CHARACTERS: Final = 512
MODELS: Final = "/v2/models/"
INFER: Final = "/infer"
# What the line of a request in the log names; nothing is matched with them.
ROUTES: Final = {
    count: Route(path, infer.infer)
    for count, path in (
        (2, "/v2/models/{name}/infer"),
        (4, "/v2/models/{name}/versions/{version}/infer"),
    )
}
ATTENTION: Final = Route("/v1/attention", attention.attend)
# Headers that ask for more than is done at once: browsers send the first two, and a body in a
# coding is read piece by piece.
UNCOMMON: Final = frozenset({b"origin", b"sec-fetch-site", b"content-encoding"})


class Entrance:
    """Finds the endpoint of requests that need none of the layers.

    Args:
        prefix: of a proxy, or empty.
        gate: of the application, where it has keys.
    """

    def __init__(self, prefix: str = "", gate: Gate | None = None) -> None:
        self._prefix = prefix
        self._gate = gate

    def find(self, scope: Scope) -> Endpoint | None:
        """The endpoint of a request with a body of known length, if it is one of those.

        It is noted in its scope as routers do.
        """
        if scope["type"] != "http" or scope["method"] != "POST":
            return None
        path: str = scope["path"]
        if self._prefix and f"{path}/".startswith(f"{self._prefix}/"):
            path = path[len(self._prefix) :]
        goal = find_goal(path) if len(path) <= MAX_PATH_CHARACTERS else None
        if goal is None or get_fields(scope).has_any(UNCOMMON):
            return None
        if self._gate is not None and self._gate.check(scope, path) is not None:
            return None
        # Not before: the log names neither the route nor the model of a request that is refused.
        endpoint, scope["route"], parts = goal
        scope["path_params"] = parts.copy()
        return endpoint


@lru_cache(MAX_PATHS)
def find_goal(path: str) -> Goal | None:
    """What a path leads to, if that is one of those endpoints."""
    if path == ATTENTION.path:
        return attention.answer, ATTENTION, {}
    if not (path.startswith(MODELS) and path.endswith(INFER)):
        return None
    parts = path[len(MODELS) :].split("/")
    if "" in parts or len(parts) not in ROUTES or (len(parts) == 4 and parts[1] != "versions"):
        return None
    version = parts[2] if len(parts) == 4 else None
    return infer.answer_route, ROUTES[len(parts)], {"name": parts[0], "version": version}
