"""The page in a hand: fingers on the picture, and room for them everywhere."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from playwright.sync_api import Browser, CDPSession, Page

from tests.browser.asking import ask, read_example
from tests.browser.drawing import assert_painted, choose, open_page, read_cells, read_plot, settle

pytestmark = pytest.mark.browser
TOKENS = 13
LEAST_TARGET_PX = 24  # WCAG 2.2, 2.5.8
FIND_SMALL_TARGETS = """
    (least) => [...document.querySelectorAll("button, select, input, textarea, label, a")]
        .filter((one) => one.checkVisibility() && one.type !== "radio" && !one.htmlFor)
        .filter((one) => Math.min(...Object.values(size(one))) < least)
        .map((one) => `${one.tagName} #${one.id} ${one.textContent}: ${JSON.stringify(size(one))}`)

    function size(one) {
        const { width, height } = one.getBoundingClientRect();
        return { width, height };
    }
"""
# Not Playwright's wait_for_function: from its second look on, the page's policy forbids its eval.
WAIT_UNTIL_SCROLLED = """(before) => new Promise((done, fail) => {
    setTimeout(() => fail(new Error("the page did not scroll")), 20_000);
    const look = () => scrollY > before && done();
    addEventListener("scroll", look);
    look();
})"""
Point = tuple[float, float]


@pytest.fixture(name="phone", params=[360, 390], ids=lambda width: f"{width}px")
def open_phone(browser: Browser, server_url: str, request: pytest.FixtureRequest) -> Iterator[Page]:
    """The page on a small screen that is touched."""
    context = browser.new_context(
        viewport={"width": request.param, "height": 740},
        device_scale_factor=2,
        has_touch=True,
        is_mobile=True,
    )
    page = open_page(context.new_page(), server_url)
    page.locator("#marks").scroll_into_view_if_needed()
    yield page
    context.close()


@pytest.fixture(name="fingers")
def attach_fingers(phone: Page) -> CDPSession:
    """Chrome's own protocol: Playwright has taps, but no drags."""
    return phone.context.new_cdp_session(phone)


def touch(fingers: CDPSession, kind: str, *points: Point) -> None:
    """Put fingers down, move or lift them, in pixels of the window."""
    places = [{"x": x, "y": y, "id": at} for at, (x, y) in enumerate(points)]
    fingers.send("Input.dispatchTouchEvent", {"type": f"touch{kind}", "touchPoints": places})


def slide(fingers: CDPSession, start: Sequence[Point], end: Sequence[Point]) -> None:
    """Move fingers, one for each pair, in ten steps; they stay down."""
    for step in range(1, 11):
        share = step / 10
        points = [
            (x + (to_x - x) * share, y + (to_y - y) * share)
            for (x, y), (to_x, to_y) in zip(start, end, strict=True)
        ]
        touch(fingers, "Move", *points)


def find_cell(phone: Page, query: float, key: float) -> Point:
    """The middle of a cell while all are in sight, in pixels of the window."""
    box, plot = phone.locator("#marks").bounding_box(), read_plot(phone)
    assert box
    x = (plot["x"] + (key + 0.5) * plot["width"] / TOKENS) / 2
    y = (plot["y"] + (query + 0.5) * plot["height"] / TOKENS) / 2
    return box["x"] + x, box["y"] + y


def read_view(phone: Page) -> dict[str, float]:
    """The part of the matrix that is in sight."""
    settle(phone)
    view: dict[str, Any] = phone.locator("#cells").evaluate(
        "({ dataset }) => JSON.parse(dataset.view)"
    )
    return view


def pinch(phone: Page, fingers: CDPSession) -> None:
    """Spread two fingers about the middle of the picture."""
    close = [find_cell(phone, 6, 5), find_cell(phone, 6, 7)]
    touch(fingers, "Start", close[0])
    touch(fingers, "Start", *close)
    slide(fingers, close, [find_cell(phone, 6, 2), find_cell(phone, 6, 10)])
    touch(fingers, "End")


def test_two_fingers_zoom_about_their_middle(phone: Page, fingers: CDPSession) -> None:
    pinch(phone, fingers)
    view = read_view(phone)
    assert view["columns"] == pytest.approx(4, abs=0.5)  # from two cells apart to eight, of 13
    assert view["left"] + view["columns"] / 2 == pytest.approx(6.5, abs=0.5)
    assert phone.evaluate("visualViewport.scale") == 1


def test_a_finger_moves_what_is_zoomed(phone: Page, fingers: CDPSession) -> None:
    pinch(phone, fingers)
    before, scroll = read_view(phone), phone.evaluate("scrollY")
    start, end = find_cell(phone, 6, 6), find_cell(phone, 9, 8)
    touch(fingers, "Start", start)
    slide(fingers, [start], [end])
    touch(fingers, "End")
    after = read_view(phone)
    assert after["left"] < before["left"]
    assert after["top"] < before["top"]
    assert phone.evaluate("scrollY") == scroll


def test_a_finger_reads_what_it_slides_over_and_keeps_the_last(
    phone: Page, fingers: CDPSession
) -> None:
    start, end = find_cell(phone, 4, 2), find_cell(phone, 4, 9)
    touch(fingers, "Start", start)
    slide(fingers, [start], [end])
    settle(phone)
    assert phone.locator("#cell-facts dd").all_inner_texts()[:2] == ["4 “the”", "9 “slept”"]
    touch(fingers, "End")
    settle(phone)
    assert phone.locator("#cell-facts dd").all_inner_texts()[:2] == ["4 “the”", "9 “slept”"]


def test_a_finger_scrolls_the_page_over_a_picture_that_is_all_in_sight(
    phone: Page, fingers: CDPSession
) -> None:
    scroll = phone.evaluate("scrollY")
    start, end = find_cell(phone, 11, 6), find_cell(phone, 1, 6)
    touch(fingers, "Start", start)
    slide(fingers, [start], [end])
    touch(fingers, "End")
    phone.evaluate(WAIT_UNTIL_SCROLLED, scroll)


def test_a_tap_chooses_a_cell(phone: Page, server_url: str) -> None:
    phone.touchscreen.tap(*find_cell(phone, 7, 3))
    settle(phone)
    assert phone.locator("#cell-facts dd").all_inner_texts()[:2] == ["7 “the”", "3 “on”"]
    weights = ask(server_url, read_example(server_url))
    assert_painted(read_cells(phone, TOKENS, TOKENS), weights[0], weights.max())


def test_every_target_is_large_enough_for_a_finger(phone: Page) -> None:
    for source in ("example", "random", "file", "json"):
        choose(phone, "source", source)
        settle(phone)
        assert phone.evaluate(FIND_SMALL_TARGETS, LEAST_TARGET_PX) == [], source
    phone.locator("#copy-as").click()
    assert phone.evaluate(FIND_SMALL_TARGETS, LEAST_TARGET_PX) == []
