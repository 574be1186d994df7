"""The pictures show the weights that the API answers."""

import numpy as np
import pytest
from playwright.sync_api import BrowserContext, Page
from safetensors.numpy import save

from tests.browser.asking import ask, draw, read_example
from tests.browser.drawing import (
    TIMEOUT_MS,
    Pixels,
    assert_painted,
    choose,
    click_cell,
    open_file,
    open_page,
    paint,
    read_canvas,
    read_cells,
    read_colours,
    read_plot,
    settle,
)

pytestmark = pytest.mark.browser
TOKENS = 13
NO_NUMBER = (0xD0, 0x3A, 0x6B)


def test_the_map_is_viridis() -> None:
    colours = read_colours()
    # As matplotlib has them at 0, 128 and 255.
    assert [bytes(colours[at]).hex() for at in (0, 128, 255)] == ["440154", "21918c", "fde725"]


def test_the_first_picture_is_the_example_of_the_model(page: Page, server_url: str) -> None:
    weights = ask(server_url, read_example(server_url))
    assert weights.shape == (3, TOKENS, TOKENS)
    assert_painted(read_cells(page, TOKENS, TOKENS), weights[0], weights.max())
    assert page.locator("#labels").input_value().startswith("the cat sat on the mat")


@pytest.mark.parametrize("head", [0, 1, 2, "mean"])
def test_every_head_and_their_mean_are_shown_small_and_large(
    page: Page, server_url: str, head: int | str
) -> None:
    weights = ask(server_url, read_example(server_url))
    shown = weights.mean(axis=0) if head == "mean" else weights[int(head)]
    page.locator(f'.thumbnail:has([data-head="{head}"])').click()
    settle(page)
    assert_painted(read_cells(page, TOKENS, TOKENS), shown, weights.max())
    small = read_canvas(page, f'.thumbnail [data-head="{head}"]')
    middles = ((np.arange(TOKENS) + 0.5) * len(small) / TOKENS).astype(int)
    assert_painted(small[middles[:, None], middles], shown, weights.max())


def test_a_scale_may_be_logarithmic_and_of_one_head(page: Page, server_url: str) -> None:
    weights = ask(server_url, read_example(server_url))
    choose(page, "scale", "log")
    settle(page)
    low = max(weights.min(), weights.max() * 1e-6)
    assert_painted(read_cells(page, TOKENS, TOKENS), weights[0], weights.max(), low)
    choose(page, "scale", "linear")
    choose(page, "range", "head")
    page.locator('.thumbnail:has([data-head="1"])').click()
    settle(page)
    assert_painted(read_cells(page, TOKENS, TOKENS), weights[1], weights[1].max())


def test_the_numbers_of_a_cell_are_those_of_the_api(page: Page, server_url: str) -> None:
    weights = ask(server_url, read_example(server_url))
    row = weights[0, 9].astype(float)
    click_cell(page, 9, 4, TOKENS, TOKENS)
    page.mouse.move(0, 0)
    settle(page)
    assert float(page.locator("#weight").inner_text()) == pytest.approx(row[4], abs=0, rel=1e-7)
    facts = page.locator("#cell-facts dd").all_inner_texts()
    entropy = -(row * np.log2(row)).sum()
    assert facts == [
        "9 “slept”",
        "4 “the”",
        f"{1 + (row > row[4]).sum()} of {TOKENS}",
        f"{entropy:.2f} of {np.log2(TOKENS):.2f} bit",
    ]
    largest = page.locator("#largest li").first.inner_text()
    assert largest.split()[0] == str(row.argmax())


def test_the_entropy_of_a_head_is_that_of_its_rows(page: Page, server_url: str) -> None:
    weights = ask(server_url, read_example(server_url)).astype(float)
    entropies = -(weights * np.log2(weights)).sum(axis=-1).mean(axis=-1)
    notes = page.locator(".thumbnail-note")
    page.wait_for_selector('.thumbnail-note:text-matches("bit")')
    settle(page)
    assert notes.all_inner_texts()[1:] == [f"{bits:.2f} bit" for bits in entropies]


def test_where_cells_share_a_pixel_the_largest_is_shown(page: Page) -> None:
    weights = np.full((2, 1500, 1700), 0.25, np.float32)
    weights[0, 700, 901] = 1  # one cell of 2.5 million
    open_file(page, "answer.safetensors", save({"attention_weights": weights}))
    highest, lower = paint(np.array([1, 0.25], np.float32), 1)
    for picture in ('.thumbnail [data-head="0"]', "#cells"):
        pixels = read_canvas(page, picture)
        plot = read_plot(page) if picture == "#cells" else whole(pixels)
        peaks = np.argwhere((pixels == highest).all(axis=-1))
        peaks = peaks[(peaks[:, 1] >= plot["x"]) & (peaks[:, 1] < plot["x"] + plot["width"])]
        assert 1 <= len(peaks) <= 4
        y, x = peaks[0]
        assert (y - plot["y"]) / plot["height"] == pytest.approx(700 / 1500, abs=0.02)
        assert (x - plot["x"]) / plot["width"] == pytest.approx(901 / 1700, abs=0.02)
        assert (pixels == lower).all(axis=-1).sum() > 1000


def whole(pixels: Pixels) -> dict[str, int]:
    """The plot of a picture without anything around its cells."""
    height, width, _ = pixels.shape
    return {"x": 0, "y": 0, "width": width, "height": height}


def test_zooming_shows_fewer_cells_and_fit_all_of_them(page: Page, server_url: str) -> None:
    weights = ask(server_url, read_example(server_url))
    for _ in range(3):
        page.locator("#zoom-in").click()
    settle(page)
    view = page.locator("#cells").evaluate("(canvas) => JSON.parse(canvas.dataset.view)")
    assert view["columns"] < 5
    page.locator("#zoom-all").click()
    settle(page)
    assert_painted(read_cells(page, TOKENS, TOKENS), weights[0], weights.max())


def test_the_wheel_zooms_about_the_pointer_and_dragging_moves(page: Page) -> None:
    box = page.locator("#marks").bounding_box()
    assert box
    page.mouse.move(box["x"] + 200, box["y"] + 200)
    page.mouse.wheel(0, -400)
    settle(page)
    before = page.locator("#cells").evaluate("(canvas) => JSON.parse(canvas.dataset.view)")
    assert 4 < before["columns"] < TOKENS
    page.mouse.down()
    page.mouse.move(box["x"] + 260, box["y"] + 170, steps=4)
    page.mouse.up()
    settle(page)
    after = page.locator("#cells").evaluate("(canvas) => JSON.parse(canvas.dataset.view)")
    assert after["left"] < before["left"]
    assert after["top"] > before["top"]


def test_random_tensors_are_the_same_for_the_same_seed(
    context: BrowserContext, server_url: str
) -> None:
    pictures = []
    for seed in (4, 4, 5):
        page = open_page(context.new_page(), server_url, f"?random=5,7,{seed}")
        pictures.append(read_cells(page, 5, 7))
        page.close()
    assert np.array_equal(pictures[0], pictures[1])
    assert not np.array_equal(pictures[0], pictures[2])


def test_draws_are_normal(page: Page) -> None:
    values = page.evaluate(
        """async () => {
            const { drawTensors } = await import("./page/input/random.js");
            const tensors = drawTensors({ d_model: 50, kdim: 50, vdim: 50 }, 400, 400, 7);
            return [...tensors.get("query").data];
        }"""
    )
    drawn = np.array(values)
    assert drawn.mean() == pytest.approx(0, abs=0.02)
    assert drawn.std() == pytest.approx(1, abs=0.02)
    assert abs(draw(20_000).std() - drawn.std()) < 0.03


def move_view(page: Page, factor: float) -> dict[str, float]:
    """Zoom by a turn of the wheel over the middle of the picture, and wait until it rests."""
    box = page.locator("#marks").bounding_box()
    assert box
    page.mouse.move(box["x"] + 200, box["y"] + 200)
    page.mouse.wheel(0, -factor)
    settle(page)
    view: dict[str, float] = page.locator("#cells").evaluate(
        "({ dataset }) => JSON.parse(dataset.view)"
    )
    return view


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_while_it_moves_a_large_picture_loses_no_peak_and_at_rest_it_is_exact(
    page: Page, scale: str
) -> None:
    weights = np.full((1, 900, 1300), 2.0**-12, np.float32)
    weights[0, 433, 571] = 1
    choose(page, "scale", scale)
    open_file(page, "answer.safetensors", save({"attention_weights": weights}))
    page.wait_for_selector('#cells[data-sheets="coloured"]', timeout=TIMEOUT_MS)
    rough = page.evaluate(COUNT_PEAKS_IN_MOTION)
    assert rough["drawn"] == "rough"
    assert 1 <= rough["peaks"] <= 16
    view = move_view(page, 300)
    exact = read_canvas(page, "#cells")
    highest = paint(np.array([1], np.float32), 1)[0]
    plot = read_plot(page)
    peaks = np.argwhere((exact == highest).all(axis=-1))
    peaks = peaks[(peaks[:, 1] >= plot["x"]) & (peaks[:, 1] < plot["x"] + plot["width"])]
    assert len(peaks) >= 1
    y, x = peaks.mean(axis=0)
    row = view["top"] + (y + 0.5 - plot["y"]) / plot["height"] * view["rows"]
    column = view["left"] + (x + 0.5 - plot["x"]) / plot["width"] * view["columns"]
    assert row == pytest.approx(433.5, abs=view["rows"] / plot["height"])
    assert column == pytest.approx(571.5, abs=view["columns"] / plot["width"])


COUNT_PEAKS_IN_MOTION = """async () => {
    const canvas = document.querySelector("#cells");
    document.querySelector("#marks").focus();
    document.querySelector("#zoom-in").click();
    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    const { drawn, plot } = canvas.dataset;
    const { x, y, width, height } = JSON.parse(plot);
    const { data } = canvas.getContext("2d").getImageData(x, y, width, height);
    let peaks = 0;
    for (let at = 0; at < data.length; at += 4) {
        if (data[at] === 0xfd && data[at + 1] === 0xe7 && data[at + 2] === 0x25) peaks += 1;
    }
    document.querySelector("#zoom-all").click();
    return { drawn, peaks };
}"""


def test_what_is_no_number_is_shown_as_none(page: Page) -> None:
    weights = np.full((2, 4, 5), 0.2, np.float32)
    weights[0, 1] = np.nan
    open_file(page, "nan.safetensors", save({"attention_weights": weights}))
    click_cell(page, 1, 3, 4, 5)
    page.mouse.move(0, 0)
    settle(page)
    assert (read_cells(page, 4, 5)[1] == NO_NUMBER).all()
    assert not (read_cells(page, 4, 5)[0] == NO_NUMBER).all()
    facts = page.locator("#cell-facts dd").all_inner_texts()
    assert page.locator("#weight").inner_text() == "NaN"
    assert facts == ["1", "3", "none", "NaN of 2.32 bit"]
    assert page.locator("#largest li").count() == 0
    page.wait_for_selector('.thumbnail-note:text-is("2.32 bit")')
    assert page.locator(".thumbnail-note").all_inner_texts() == ["NaN bit", "NaN bit", "2.32 bit"]


@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 2000, 1), (3, 1, 2000), (64, 9, 7)], ids=str)
def test_a_picture_of_an_odd_shape_fits_the_screen(page: Page, shape: tuple[int, ...]) -> None:
    heads, rows, columns = shape
    weights = np.random.default_rng(2).dirichlet(np.ones(columns), (heads, rows))
    open_file(page, "odd.safetensors", save({"attention_weights": weights.astype(np.float32)}))
    assert page.locator("#head-size").inner_text() == f"{rows} \N{MULTIPLICATION SIGN} {columns}"
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    for key in ("]", "End", "ArrowDown", "+", "+", "-", "0"):
        page.locator("#marks").press(key)
    settle(page)
    assert page.locator("#marks").bounding_box()["y"] < 700  # type: ignore[index]
    chosen = page.locator('.thumbnail[aria-pressed="true"]')
    assert chosen.count() == 1


@pytest.mark.parametrize("value", [np.inf, -np.inf, -1, 1e-45, 3e38])
def test_weights_beyond_all_bounds_are_drawn(page: Page, value: float) -> None:
    weights = np.full((1, 3, 4), 0.25, np.float32)
    weights[0, 1, 2] = value
    for scale in ("linear", "log"):
        choose(page, "scale", scale)
        open_file(page, f"{scale}.safetensors", save({"attention_weights": weights}))
    assert not page.locator("#error").is_visible()
