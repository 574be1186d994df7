"""The prefix alone leads to the page, as an answer like any other."""

import logging
from pathlib import Path

import httpx
import pytest

from service.app import create_app
from service.settings import Settings

PREFIX = "/attn"


async def ask(settings: Settings, method: str, target: str) -> httpx.Response:
    """The answer of an application below a prefix."""
    app = create_app(settings.model_copy(update={"root_path": PREFIX}))
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://limelight") as client:
        return await client.request(method, target, headers={"X-Request-Id": "mine"})


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST"])
@pytest.mark.parametrize("query", ["", "?a=b&c=%20"])
async def test_the_prefix_alone_leads_to_the_page(
    settings: Settings, method: str, query: str
) -> None:
    answer = await ask(settings, method, f"{PREFIX}{query}")
    assert (answer.status_code, answer.headers["Location"]) == (307, f"{PREFIX}/{query}")


async def test_its_answer_is_marked_guarded_and_logged_like_any_other(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "limelight.requests"):
        answer = await ask(settings, "GET", PREFIX)
    assert answer.headers["X-Request-Id"] == "mine"
    assert answer.headers["Content-Security-Policy"].startswith("default-src 'self'")
    assert [record.getMessage() for record in caplog.records] == ["GET /attn 307"]


@pytest.mark.parametrize(("method", "status"), [("GET", 307), ("POST", 401)])
async def test_with_keys_whoever_may_read_the_page_is_led_to_it(
    settings: Settings, tmp_path: Path, method: str, status: int
) -> None:
    file = tmp_path / "keys"
    file.write_text(f"infer:{'5e' * 32}")
    guarded = settings.model_copy(update={"api_keys_file": file})
    assert (await ask(guarded, method, PREFIX)).status_code == status
