"""What the page has drawn, read from its canvases, and what it ought to have drawn."""

import base64
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from playwright.sync_api import Page

import service

VIRIDIS: Final = Path(service.__file__).parent / "page" / "picture" / "viridis.js"
ZERO: Final = (0xE9, 0xEB, 0xEE)
DRAWN: Final = "#cells[data-plot]"
RESTING: Final = 'body:not(:has([data-drawn="rough"], [aria-busy="true"]))'
TIMEOUT_MS: Final = 20_000

Weights = NDArray[np.float32]
Pixels = NDArray[np.uint8]


def open_page(page: Page, url: str, query: str = "") -> Page:
    """Go to a page, and wait until it has drawn an answer."""
    page.goto(f"{url}/{query}")
    page.wait_for_selector(DRAWN, timeout=TIMEOUT_MS)
    return page


def act(page: Page, action: Callable[[], Any]) -> None:
    """Do something that makes the page ask its model, and wait until the answer is drawn."""
    with page.expect_response(lambda answer: "/v1/attention" in answer.url, timeout=TIMEOUT_MS):
        action()
    settle(page)


def settle(page: Page) -> None:
    """Wait until what was changed is drawn: state is shown in the frame after a change."""
    page.wait_for_selector("body:not(.busy)", timeout=TIMEOUT_MS)
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    page.wait_for_selector(RESTING, state="attached", timeout=TIMEOUT_MS)


def open_file(page: Page, name: str, content: bytes) -> None:
    """Open a file, and wait until its name is there and what it holds is drawn."""
    file: Any = {"name": name, "mimeType": "application/octet-stream", "buffer": content}
    page.locator("#file").set_input_files(file)
    page.wait_for_selector(f'#file-name:text-is("{name}")', state="attached", timeout=TIMEOUT_MS)
    settle(page)


def choose(page: Page, name: str, value: str) -> None:
    """Choose a radio button, whose label covers it."""
    page.locator(f'label:has(input[name="{name}"][value="{value}"])').click()


def read_canvas(page: Page, selector: str) -> Pixels:
    """A canvas as ``[height, width, 3]``."""
    address = page.locator(selector).evaluate("(canvas) => canvas.toDataURL()")
    return read_png(base64.b64decode(str(address).partition(",")[2]))


def read_png(content: bytes) -> Pixels:
    """A picture as ``[height, width, 3]``."""
    return np.asarray(Image.open(io.BytesIO(content)).convert("RGB"))


def read_plot(page: Page) -> dict[str, int]:
    """Where the cells are, in pixels of the canvas."""
    plot: dict[str, int] = json.loads(str(page.locator("#cells").get_attribute("data-plot")))
    return plot


def read_cells(page: Page, rows: int, columns: int) -> Pixels:
    """The colour in the middle of each cell: ``[rows, columns, 3]``."""
    return pick_middles(read_canvas(page, "#cells"), read_plot(page), rows, columns)


def pick_middles(picture: Pixels, plot: dict[str, int], rows: int, columns: int) -> Pixels:
    """The colour in the middle of each cell of a plot: ``[rows, columns, 3]``."""
    x = plot["x"] + ((np.arange(columns) + 0.5) * plot["width"] / columns).astype(int)
    y = plot["y"] + ((np.arange(rows) + 0.5) * plot["height"] / rows).astype(int)
    middles: Pixels = picture[y[:, None], x]
    return middles


def read_colours() -> Pixels:
    """The colours of the map: ``[256, 3]``."""
    digits = "".join(re.findall(r'^  "([0-9a-f]+)"', VIRIDIS.read_text(), re.MULTILINE))
    return np.frombuffer(bytes.fromhex(digits), np.uint8).reshape(256, 3)


def paint(weights: Weights, high: float, low: float = 0) -> Pixels:
    """The colours that weights ought to have.

    Args:
        weights: of any shape.
        high: the weight of the highest colour.
        low: that of the lowest on a logarithmic scale; 0 for a linear one.
    """
    exact = weights.astype(np.float64)
    with np.errstate(divide="ignore"):
        places = np.log(exact / low) / np.log(high / low) if low else exact / high
    indices = np.clip(places * 256, 0, 255).astype(int)
    return np.where((weights == 0)[..., None], np.array(ZERO, np.uint8), read_colours()[indices])


def assert_painted(pixels: Pixels, weights: Weights, high: float, low: float = 0) -> None:
    """Every pixel has the colour of its weight; at an edge between two colours, either."""
    near = [paint(weights * factor, high, low) for factor in (1, 1 - 1e-6, 1 + 1e-6)]
    fits = np.any([(pixels == colours).all(axis=-1) for colours in near], axis=0)
    assert fits.all(), f"{(~fits).sum()} of {fits.size} cells have another colour"
    assert len(np.unique(pixels.reshape(-1, 3), axis=0)) > 1


def click_cell(page: Page, query: float, key: float, rows: int, columns: int) -> None:
    """Click a cell; above the first row, where `query` is negative, the name of its key."""
    plot = read_plot(page)
    x = plot["x"] + (key + 0.5) * plot["width"] / columns
    y = plot["y"] + (query + 0.5) * plot["height"] / rows if query >= 0 else plot["y"] - 10
    page.locator("#marks").click(position={"x": x, "y": y})
