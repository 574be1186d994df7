"""A prefix is served whether or not a proxy strips it."""

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
import pytest_asyncio
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Message, Scope

from service.http.prefix import Prefix

EACH = pytest.mark.parametrize("prefix", ["/attn", ""], ids=["passed-on", "stripped"])


async def tell(request: Request) -> Response:
    """What a path is said to be, whole and below the prefix."""
    scope = request.scope
    return JSONResponse([scope["root_path"], request.url.path, scope["raw_path"].decode()])


def make_app(folder: Path, prefix: str) -> Prefix:
    """An application with a route and a mounted folder, below a prefix."""
    (folder / "style.css").write_text("body {}")
    routes = [Route("/", tell), Route("/v2", tell), Mount("/page", StaticFiles(directory=folder))]
    return Prefix(Starlette(routes=routes), prefix)


async def receive_nothing() -> Message:
    """Nobody asks."""
    return {}


async def send_nowhere(_: Message) -> None:
    """Nobody listens."""


@pytest_asyncio.fixture
async def client(tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    """A client of an application below /attn."""
    transport = httpx.ASGITransport(make_app(tmp_path, "/attn"))
    async with httpx.AsyncClient(transport=transport, base_url="http://limelight") as opened:
        yield opened


@EACH
@pytest.mark.parametrize("path", ["/", "/v2"])
async def test_an_endpoint_is_found_and_knows_its_whole_path(
    client: httpx.AsyncClient, prefix: str, path: str
) -> None:
    answer = await client.get(f"{prefix}{path}")
    assert answer.json() == ["/attn", f"/attn{path}", f"/attn{path}"]


@EACH
async def test_a_mounted_folder_is_found(client: httpx.AsyncClient, prefix: str) -> None:
    assert (await client.get(f"{prefix}/page/style.css")).text == "body {}"


@pytest.mark.parametrize("path", ["/attention", "/attn/attn/v2", "/v3", "/attn/v3"])
async def test_another_path_is_not_found(client: httpx.AsyncClient, path: str) -> None:
    assert (await client.get(path)).status_code == 404


async def test_the_prefix_alone_is_passed_on_as_it_is() -> None:
    scopes: list[Scope] = []

    async def app(scope: Scope, receive: object, send: object) -> None:
        scopes.append(scope)

    scope = {"type": "http", "path": "/attn", "raw_path": b"/attn"}
    await Prefix(app, "/attn")(scope, receive_nothing, send_nowhere)
    assert scopes == [{**scope, "root_path": "/attn"}]


async def test_without_a_prefix_nothing_is_changed(tmp_path: Path) -> None:
    transport = httpx.ASGITransport(make_app(tmp_path, ""))
    async with httpx.AsyncClient(transport=transport, base_url="http://limelight") as client:
        assert (await client.get("/v2")).json() == ["", "/v2", "/v2"]
        assert (await client.get("/attn/v2")).status_code == 404


async def test_the_life_of_an_application_passes() -> None:
    scopes: list[Scope] = []

    async def app(scope: Scope, receive: object, send: object) -> None:
        scopes.append(scope)

    await Prefix(app, "/attn")({"type": "lifespan"}, receive_nothing, send_nowhere)
    assert scopes == [{"type": "lifespan"}]
