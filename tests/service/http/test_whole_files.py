"""Whoever asks for a part of a file gets the whole."""

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

from service.http.whole_files import WholeFiles

TEXT = "body { margin: 0 }"
RANGES = ["bytes=0-3", "bytes=0-1,4-5", "bytes=999-", "bytes=-5", "bytes", "junk", "lines=1-2"]


async def tell_headers(request: Request) -> Response:
    """The names of the headers that came."""
    return JSONResponse(sorted(request.headers.keys()))


@pytest_asyncio.fixture(name="client")
async def connect(tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a folder of files."""
    (tmp_path / "style.css").write_text(TEXT)
    routes = [
        Mount("/page", StaticFiles(directory=tmp_path)),
        Route("/headers", tell_headers, methods=["GET", "POST"]),
    ]
    transport = httpx.ASGITransport(WholeFiles(Starlette(routes=routes)))
    async with httpx.AsyncClient(transport=transport, base_url="http://limelight") as opened:
        yield opened


@pytest.mark.parametrize("asked", RANGES)
async def test_a_part_is_answered_with_the_whole(client: httpx.AsyncClient, asked: str) -> None:
    answer = await client.get("/page/style.css", headers={"Range": asked})
    assert (answer.status_code, answer.text) == (200, TEXT)
    assert "Accept-Ranges" not in answer.headers
    assert "Content-Range" not in answer.headers


async def test_what_has_not_changed_is_still_not_sent_again(client: httpx.AsyncClient) -> None:
    tag = (await client.get("/page/style.css")).headers["ETag"]
    answer = await client.get("/page/style.css", headers={"If-None-Match": tag, "Range": "junk"})
    assert answer.status_code == 304


async def test_other_headers_and_other_methods_are_left_alone(client: httpx.AsyncClient) -> None:
    headers = {"Range": "bytes=0-", "If-Range": "x", "X-Other": "y"}
    read = (await client.get("/headers", headers=headers)).json()
    sent = (await client.post("/headers", headers=headers)).json()
    assert "x-other" in read
    assert {"range", "if-range"} & set(read) == set()
    assert {"range", "if-range"} <= set(sent)


async def test_the_life_of_an_application_passes() -> None:
    scopes: list[Scope] = []

    async def app(scope: Scope, receive: object, send: object) -> None:
        scopes.append(scope)

    async def receive() -> Message:
        return {}

    async def send(_: Message) -> None:
        """Nobody listens."""

    await WholeFiles(app)({"type": "lifespan"}, receive, send)
    assert scopes == [{"type": "lifespan"}]
