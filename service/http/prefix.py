"""A path prefix under which a proxy serves this server."""

from starlette.types import ASGIApp, Receive, Scope, Send


class Prefix:
    """Serves everything under a prefix, whether the proxy strips it from the path or passes it on.

    ASGI wants `root_path` to be part of `path`; mounted applications find nothing where it is not.

    Args:
        app: what is served.
        prefix: with a slash first and none last, or empty.
    """

    def __init__(self, app: ASGIApp, prefix: str) -> None:
        self._app = app
        self._prefix = prefix

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on with its whole path."""
        if scope["type"] == "http" and self._prefix:
            scope = self._complete(scope)
        await self._app(scope, receive, send)

    def _complete(self, scope: Scope) -> Scope:
        whole = dict(scope, root_path=self._prefix)
        if not f"{scope['path']}/".startswith(f"{self._prefix}/"):
            whole["path"] = f"{self._prefix}{scope['path']}"
            whole["raw_path"] = self._prefix.encode() + scope.get("raw_path", b"")
        return whole
