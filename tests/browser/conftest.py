"""Chromium on the pages of real servers; nothing may go wrong in it, and nothing may leave them."""

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, sync_playwright

from tests.browser.drawing import open_page
from tests.integration.server_process import start_server

COMMANDS: Final = ("chromium", "chromium-browser", "google-chrome")
# A container's sandbox is its own; everything else keeps the browser from asking its maker.
OPTIONS: Final = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
WIDE: Final = {"width": 1440, "height": 900}
SIZES: Final = {"eight": (64, 8)}


# While Playwright runs, so does its event loop, beside which no asynchronous test can: it ends with
# the file.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Debian's Chromium, or whichever is installed."""
    command = next(found for name in COMMANDS if (found := shutil.which(name)))
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=command, args=OPTIONS)
        yield launched
        launched.close()


@pytest.fixture(name="context")
def open_context(browser: Browser, auth_headers: Mapping[str, str]) -> Iterator[BrowserContext]:
    """A window with nothing remembered; whatever is asked in it is asked of one origin."""
    context = browser.new_context(viewport=WIDE, color_scheme="light")  # type: ignore[arg-type]
    if auth_headers:
        context.set_extra_http_headers(dict(auth_headers))
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    asked: list[str] = []
    context.on("request", lambda request: asked.append(request.url))
    complaints: list[str] = []
    context.on("weberror", lambda error: complaints.append(str(error.error)))
    context.on("console", lambda message: note_complaint(message, complaints))
    yield context
    context.close()
    origins = {urlsplit(url).netloc for url in asked if not url.startswith(("blob:", "data:"))}
    assert len(origins) <= 1, origins
    assert complaints == []


def note_complaint(message: ConsoleMessage, complaints: list[str]) -> None:
    """Keep errors and warnings, but for refusals of the server, which tests ask for."""
    if message.type in ("error", "warning") and "Failed to load resource" not in message.text:
        complaints.append(message.text)


@pytest.fixture(name="page")
def open_demo(context: BrowserContext, server_url: str) -> Page:
    """The page of the demo model, once it shows the example."""
    return open_page(context.new_page(), server_url)


@pytest.fixture(scope="session")
def eight_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server of a model with eight heads, 64 wide, beside the demo."""
    from export import export_module
    from model.attention import MultiHeadAttention
    from model.contract import AttentionSpec
    from model.weights import Weights
    from service.engine.directories import DEMO

    models = tmp_path_factory.mktemp("models")
    shutil.copytree(DEMO / "demo", models / "demo")
    for name, (width, heads) in SIZES.items():
        weights = Weights.random(AttentionSpec(width, heads), seed=5)
        export_module(MultiHeadAttention.from_weights(weights), models, name=name)
    with start_server("--models", str(models)) as server:
        yield server.url


@pytest.fixture
def downloads(tmp_path: Path) -> Path:
    """A folder for what the page saves."""
    return tmp_path
