"""The files of the page, which a browser keeps but asks about each time."""

from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from service.http.page_files import PageFiles


@pytest.fixture
def client(tmp_path: Path) -> httpx.AsyncClient:
    """A client of a folder with one module."""
    (tmp_path / "start.js").write_text("export {};\n")
    app = Starlette(routes=[Mount("/page", PageFiles(directory=tmp_path))])
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://limelight")


async def test_a_file_comes_with_its_etag_and_is_asked_about_again(
    client: httpx.AsyncClient,
) -> None:
    answer = await client.get("/page/start.js")
    assert answer.text == "export {};\n"
    assert answer.headers["cache-control"] == "no-cache"
    assert answer.headers["content-type"].startswith("text/javascript")
    again = await client.get("/page/start.js", headers={"If-None-Match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["cache-control"] == "no-cache"


async def test_a_file_that_is_not_there_is_404(client: httpx.AsyncClient) -> None:
    assert (await client.get("/page/other.js")).status_code == 404
    assert (await client.get("/page/%2e%2e/start.js")).status_code == 404
