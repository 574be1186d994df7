"""The page is for everyone: by keyboard, by ear, on a small screen, in light and dark."""

import os
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from tests.browser.drawing import act, choose, open_page, settle

pytestmark = pytest.mark.browser
COUNT_CONTROLS = """
    [...document.querySelectorAll("button, select, input, a, canvas[tabindex]")]
        .filter((one) => one.checkVisibility() && !one.disabled && one.type !== "radio")
        .length
"""
SERIOUS = ("serious", "critical")
README_PICTURE = Path(__file__).parents[2] / "docs" / "page.png"


def find_violations(page: Page) -> list[str]:
    """What axe-core finds that is serious, with the elements."""
    found: Any = Axe().run(page).response["violations"]
    return [
        f"{each['id']}: {node['html']}"
        for each in found
        if each["impact"] in SERIOUS
        for node in each["nodes"]
    ]


@pytest.mark.parametrize("width", [1440, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(
    browser: Browser, server_url: str, scheme: Any, width: int
) -> None:
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, reduced_motion="reduce"
    )
    page = open_page(context.new_page(), server_url, "?head=1&causal=top_left")
    assert find_violations(page) == []
    for source in ("random", "file", "json"):
        choose(page, "source", source)
        settle(page)
        assert find_violations(page) == [], source
    act(page, lambda: page.locator(".switch").nth(2).click())
    page.locator("#hidden-keys").fill("99")
    page.locator("#hidden-keys").press("Enter")
    page.locator("#copy-as").click()
    assert find_violations(page) == []
    page.keyboard.press("Escape")
    page.goto(f"{server_url}/?model=other")
    page.wait_for_selector("#error:visible")
    assert find_violations(page) == []
    context.close()


@pytest.mark.parametrize("width", [360, 390, 768, 1024, 1440])
def test_nothing_is_wider_than_the_screen(browser: Browser, server_url: str, width: int) -> None:
    context = browser.new_context(viewport={"width": width, "height": 740})
    for query in ("", "?random=120,120,1", "?random=9,200,1"):
        page = open_page(context.new_page(), server_url, query)
        choose(page, "source", "random")
        settle(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, query
        page.close()
    context.close()


def test_the_picture_is_read_by_keyboard(page: Page) -> None:
    page.locator("#marks").focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight", "]"):
        page.keyboard.press(key)
    settle(page)
    facts = page.locator("#cell-facts dd").all_inner_texts()
    assert facts[:2] == ["2 “sat”", "1 “cat”"]
    assert page.locator("#head-name").inner_text() == "Head 1"
    page.keyboard.press("End")
    page.keyboard.press("Shift+ArrowDown")
    settle(page)
    facts = page.locator("#cell-facts dd").all_inner_texts()
    assert facts[:2] == ["12 “rug”", "12 “rug”"]
    act(page, lambda: page.keyboard.press("x"))
    assert page.locator("#hidden-keys").input_value() == "12"
    page.keyboard.press("+")
    settle(page)
    view = page.locator("#cells").evaluate("(canvas) => JSON.parse(canvas.dataset.view)")
    assert view["columns"] < 13


def test_what_the_keyboard_points_at_is_spoken(page: Page) -> None:
    spoken = page.locator('[aria-live="polite"]')
    assert "Weight" in spoken.inner_text()
    assert page.locator("#marks").get_attribute("aria-label") == "Head 0: 13 queries by 13 keys"
    assert page.locator("#bars").get_attribute("aria-label") == (
        "Weights of query 0 over the keys, a strip for each head"
    )


def test_every_control_is_reached_by_tab(page: Page) -> None:
    wanted = page.evaluate(COUNT_CONTROLS)
    page.locator("body").focus()
    reached = set()
    for _ in range(wanted + 20):
        page.keyboard.press("Tab")
        reached.add(
            page.evaluate(
                """(() => { const one = document.activeElement;
                    if (one.type === "radio" || one === document.body) return "";
                    return [...document.querySelectorAll("*")].indexOf(one); })()"""
            )
        )
    assert len(reached - {""}) == wanted


def test_the_picture_of_the_readme(browser: Browser, server_url: str) -> None:
    context = browser.new_context(viewport={"width": 1440, "height": 850}, color_scheme="light")
    page = open_page(context.new_page(), server_url, "?head=1&causal=top_left&cell=9,2")
    page.wait_for_selector('.thumbnail-note:text-matches("bit")')
    settle(page)
    picture = page.screenshot(path=README_PICTURE if "LIMELIGHT_PICTURE" in os.environ else None)
    context.close()
    assert 20_000 < len(picture) < 200_000
    assert README_PICTURE.stat().st_size < 200_000
