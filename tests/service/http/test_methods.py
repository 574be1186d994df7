"""Every method of a path is listed."""

import pytest
from fastapi import APIRouter, FastAPI
from starlette.applications import Starlette

from service.http.methods import list_methods


async def answer() -> None:
    """Nothing."""


def make_app() -> FastAPI:
    """An application whose endpoints come from two routers, with a path that both have."""
    app, first, second = FastAPI(), APIRouter(), APIRouter(prefix="/v2")
    first.add_api_route("/v2/logging", answer, methods=["GET"])
    first.add_api_route("/v2/models/{name}", answer, methods=["GET"])
    second.add_api_route("/logging", answer, methods=["POST", "DELETE"])
    app.include_router(first)
    app.include_router(second)
    app.mount("/page", Starlette())
    return app


@pytest.mark.parametrize("root_path", ["", "/attn"])
@pytest.mark.parametrize(
    ("path", "methods"),
    [
        ("/v2/logging", ["GET", "POST", "DELETE"]),
        ("/v2/models/demo", ["GET"]),
        ("/v2/models", []),
        ("/page/x", []),
        ("/openapi.json", ["GET", "HEAD"]),
    ],
)
def test_all_methods_of_a_path(root_path: str, path: str, methods: list[str]) -> None:
    scope = {"type": "http", "path": f"{root_path}{path}", "root_path": root_path, "headers": []}
    assert list_methods(make_app().routes, scope) == methods
