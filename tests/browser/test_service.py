"""What the page says of the service: its state, its errors, its keys; and its own address."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import BrowserContext, Page, Route
from safetensors.numpy import save

from tests.browser.asking import Arrays, ask, draw, read_example
from tests.browser.drawing import (
    act,
    assert_painted,
    choose,
    open_file,
    open_page,
    read_cells,
    settle,
)
from tests.integration.server_process import start_server

pytestmark = pytest.mark.browser
KEY = "a-key-of-the-tests-0123456789"
TOKENS = 13


def test_a_corner_says_who_answered_and_how_fast(page: Page) -> None:
    names = page.locator("#service-facts dt").all_inner_texts()
    facts = page.locator("#service-facts dd").all_inner_texts()
    assert names == ["Model", "Provider", "Graph", "Queue", "Compute", "Answer"]
    assert facts[:3] == ["demo, version 1: 3 heads, 6 wide", "cpu", "fused_weights"]
    assert all(fact.endswith(" ms") for fact in facts[3:])


@pytest.mark.parametrize(
    "arrays",
    [{"query": draw(2, 5)}, {"query": draw(2, 6), "attn_mask": draw(2, 2)}],
    ids=["width", "name"],
)
def test_an_error_is_in_the_servers_words(page: Page, server_url: str, arrays: Arrays) -> None:
    refusal = httpx.post(f"{server_url}/v1/attention", content=save(arrays))
    assert refusal.status_code == 400
    open_file(page, "wrong.safetensors", save(arrays))
    page.wait_for_selector("#error:visible")
    assert page.locator("#error").inner_text() == f"400 {refusal.json()['error']}"
    act(page, lambda: choose(page, "source", "example"))
    assert not page.locator("#error").is_visible()


def test_a_server_that_stopped_is_said_to_have(context: BrowserContext) -> None:
    with start_server() as server:
        page = open_page(context.new_page(), server.url)
    page.locator("#run").click()
    page.wait_for_selector("#error:visible")
    text = page.locator("#error").inner_text()
    assert text == "the server does not answer; it may have stopped"


def test_an_answer_that_breaks_off_is_said_to_have(page: Page) -> None:
    page.evaluate(
        """() => {
            const fail = () => Promise.reject(new TypeError("network error"));
            Response.prototype.arrayBuffer = fail;
        }"""
    )
    page.locator("#run").click()
    page.wait_for_selector("#error:visible")
    text = page.locator("#error").inner_text()
    assert text == "the answer broke off; the server may have stopped"
    page.wait_for_selector("body:not(.busy)")


def test_a_proxy_that_answers_itself_is_suspected(context: BrowserContext, server_url: str) -> None:
    page = context.new_page()
    page.route("**/v2/models", lambda route: route.fulfill(body="<h1>Sign in</h1>"))
    page.goto(f"{server_url}/")
    page.wait_for_selector("#error:visible")
    text = page.locator("#error").inner_text()
    assert text == "/v2/models is answered by something else; is a proxy in between?"


def test_a_server_without_models_says_so(
    context: BrowserContext, tmp_path_factory: pytest.TempPathFactory
) -> None:
    empty = tmp_path_factory.mktemp("empty")
    with start_server("--models", str(empty), "--model-control", "explicit") as server:
        page = context.new_page()
        page.goto(server.url)
        page.wait_for_selector("#error:visible")
        text = page.locator("#error").inner_text()
        assert text == "no model is served; load one, or open a file of weights"


def test_a_model_that_was_unloaded_meanwhile_is_named(context: BrowserContext) -> None:
    with start_server("--model-control", "explicit", "--load-models", "demo") as server:
        page = open_page(context.new_page(), server.url)
        unload = f"{server.url}/v2/repository/models/demo/unload"
        httpx.post(unload, json={}).raise_for_status()
        page.locator("#run").click()
        page.wait_for_selector("#error:visible")
        refusal = httpx.post(
            f"{server.url}/v1/attention?model=demo", content=save({"query": draw(2, 6)})
        )
        text = page.locator("#error").inner_text()
        assert text == f"{refusal.status_code} {refusal.json()['error']}"
        page.wait_for_selector("body:not(.busy)")


def test_what_takes_long_can_be_cancelled(page: Page, server_url: str) -> None:
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/v1/attention*", hold)
    assert not page.locator("#cancel").is_visible()
    page.locator("#run").click()
    page.locator("#cancel").click()
    settle(page)
    assert not page.locator("#cancel").is_visible()
    assert not page.locator("#error").is_visible()
    assert page.locator("#busy").inner_text() == ""
    page.unroute("**/v1/attention*")
    act(page, lambda: page.locator("#run").click())
    weights = ask(server_url, read_example(server_url))
    assert_painted(read_cells(page, TOKENS, TOKENS), weights[0], weights.max())


def test_the_address_outlives_a_key_that_is_held_down(page: Page) -> None:
    page.locator("#marks").focus()
    for _ in range(120):
        for key in ("ArrowRight", "ArrowLeft"):
            page.keyboard.press(key)
    page.keyboard.press("ArrowDown")
    page.wait_for_url("**/?model=demo&head=0&cell=1,0")  # and `context` saw no warning


def test_a_picture_that_answers_another_question_is_dimmed(page: Page) -> None:
    open_file(page, "wrong.safetensors", save({"query": draw(2, 5)}))
    page.wait_for_selector("body.stale")
    act(page, lambda: choose(page, "source", "example"))
    assert page.locator("body.stale").count() == 0


def test_of_two_wishes_the_last_one_counts(page: Page, server_url: str) -> None:
    page.evaluate("""for (const value of ["random", "example", "random", "example"])
        document.querySelector(`input[name="source"][value="${value}"]`).click()""")
    settle(page)
    weights = ask(server_url, read_example(server_url))
    assert_painted(read_cells(page, TOKENS, TOKENS), weights[0], weights.max())


def test_another_model_is_asked_when_it_is_chosen(context: BrowserContext, eight_url: str) -> None:
    page = open_page(context.new_page(), eight_url)
    act(page, lambda: page.locator("#model").select_option("eight"))
    assert page.locator(".thumbnail").count() == 9
    assert page.locator("#service-facts dd").first.inner_text() == (
        "eight, version 1: 8 heads, 64 wide"
    )


def test_the_address_restores_the_view(page: Page, server_url: str) -> None:
    page.locator('.thumbnail:has([data-head="2"])').click()
    choose(page, "range", "head")
    act(page, lambda: choose(page, "causal", "bottom_right"))
    query = "?model=demo&head=2&range=head&causal=bottom_right"
    page.wait_for_url(f"{server_url}/{query}")
    page.goto("about:blank")
    open_page(page, server_url, query)
    weights = ask(server_url, read_example(server_url), causal="bottom_right")
    assert_painted(read_cells(page, TOKENS, TOKENS), weights[2], weights[2].max())
    assert page.locator("#head-name").inner_text() == "Head 2"


@pytest.mark.parametrize(
    "query", ["?head=9", "?head=-1&cell=7", "?cell=99,99&item=5", "?random=0,0,0", "?scale=x"]
)
def test_an_address_that_fits_nothing_shows_what_there_is(
    context: BrowserContext, server_url: str, query: str
) -> None:
    page = open_page(context.new_page(), server_url, query)
    assert page.locator("#head-name").inner_text() == "Head 0"
    assert not page.locator("#error").is_visible()


def test_a_model_that_is_not_served_is_named(context: BrowserContext, server_url: str) -> None:
    page = context.new_page()
    page.goto(f"{server_url}/?model=other")
    page.wait_for_selector("#error:visible")
    text = page.locator("#error").inner_text()
    assert text == "404 model 'other' is not served here; served: demo"


def test_everything_works_below_a_prefix(context: BrowserContext) -> None:
    with start_server("--root-path", "/tools/attention") as server:
        page = open_page(context.new_page(), server.url)
        weights = ask(server.url, read_example(server.url))
        assert_painted(read_cells(page, TOKENS, TOKENS), weights[0], weights.max())


@pytest.fixture(scope="module")
def closed_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server that wants a key."""
    file: Path = tmp_path_factory.mktemp("keys") / "keys"
    file.write_text(f"infer:{hashlib.sha256(KEY.encode()).hexdigest()}\n")
    with start_server("--api-keys-file", str(file)) as server:
        yield server.url


def test_a_key_is_asked_for_and_kept_in_this_tab_alone(
    context: BrowserContext, closed_url: str
) -> None:
    page = context.new_page()
    page.goto(closed_url)
    page.wait_for_selector("#key-dialog[open]")
    page.locator("#key").fill("wrong")
    page.keyboard.press("Enter")
    page.wait_for_selector('#key-note:text-is("The server does not know this key.")')
    page.locator("#key").fill(KEY)
    page.keyboard.press("Enter")
    page.wait_for_selector("#cells[data-plot]")
    places = page.evaluate("[localStorage.length, document.cookie, Object.values(sessionStorage)]")
    assert places == [0, "", [KEY]]
    page.reload()
    page.wait_for_selector("#cells[data-plot]")
    other = context.new_page()
    other.goto(closed_url)
    other.wait_for_selector("#key-dialog[open]")
    page.locator("#forget-key").click()
    page.wait_for_selector("#key-dialog[open]")


def test_whoever_gives_no_key_is_refused_in_the_servers_words(
    context: BrowserContext, closed_url: str
) -> None:
    page = context.new_page()
    page.goto(closed_url)
    page.wait_for_selector("#key-dialog[open]")
    page.locator("#key").fill("ключ")
    page.keyboard.press("Enter")
    assert page.locator("#key:invalid").count() == 1
    page.keyboard.press("Escape")
    page.wait_for_selector("#error:visible")
    refusal = httpx.get(f"{closed_url}/v2/models")
    assert page.locator("#error").inner_text() == f"401 {refusal.json()['error']}"
    page.wait_for_selector("body:not(.busy)")


def test_code_reads_the_key_from_the_environment(context: BrowserContext, closed_url: str) -> None:
    page = context.new_page()
    page.goto(closed_url)
    page.locator("#key").fill(KEY)
    page.keyboard.press("Enter")
    page.wait_for_selector("#cells[data-plot]")
    settle(page)
    page.locator("#copy-as").click()
    for language in ("curl", "httpx", "tritonclient"):
        choose(page, "language", language)
        code = page.locator("#code").inner_text()
        assert KEY not in code
        assert "LIMELIGHT_KEY" in code
