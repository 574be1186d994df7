"""Page and docs behind nginx, below a prefix and over TLS."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.drawing import TIMEOUT_MS, open_page
from tests.deploy.nginx import PREFIX, Nginx, start_nginx

pytestmark = [pytest.mark.browser, pytest.mark.nginx]


@pytest.fixture(scope="module", name="nginx")
def serve_behind_nginx(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nginx]:
    """An nginx before a server."""
    with start_nginx(tmp_path_factory.mktemp("nginx")) as nginx:
        yield nginx


@pytest.fixture(name="tab")
def open_tab(browser: Browser) -> Iterator[Page]:
    """A tab that takes a certificate that signs itself."""
    context = browser.new_context(ignore_https_errors=True)
    yield context.new_page()
    context.close()


def test_the_page_shows_the_example(tab: Page, nginx: Nginx) -> None:
    open_page(tab, f"{nginx.url}{PREFIX}")
    assert tab.url.startswith(f"{nginx.url}{PREFIX}/")


def test_what_the_docs_try_out_is_answered(tab: Page, nginx: Nginx) -> None:
    tab.goto(f"{nginx.url}{PREFIX}/docs")
    operation = tab.locator(".opblock", has_text="/v1/attention").first
    operation.locator(".opblock-summary").click()
    operation.get_by_role("button", name="Try it out").click()
    operation.get_by_role("button", name="Execute").click()
    expect(operation.locator(".request-url pre")).to_contain_text(
        f"{nginx.url}{PREFIX}/v1/", timeout=TIMEOUT_MS
    )
    answer = operation.locator(".live-responses-table tbody .response-col_status")
    expect(answer).to_contain_text("200", timeout=TIMEOUT_MS)
