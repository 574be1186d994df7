"""Tensors from files and from text, in every form that is read."""

import io
import json
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from playwright.sync_api import BrowserContext, Page
from safetensors.numpy import save

from tests.browser.asking import Arrays, ask, draw, write_npy, write_npz
from tests.browser.drawing import (
    act,
    assert_painted,
    choose,
    open_file,
    open_page,
    read_canvas,
    read_cells,
    read_plot,
    settle,
)

pytestmark = pytest.mark.browser
L, S, D = 5, 7, 6
ROWS = ["a", "b", "c", "d", "e"]
COLUMNS = ["p", "q", "r", "s", "t", "u", "v"]


def draw_arrays() -> Arrays:
    """Query, key and value, all different."""
    return {"query": draw(L, D, seed=1), "key": draw(S, D, seed=2), "value": draw(S, D, seed=3)}


def write_stored(arrays: Arrays) -> bytes:
    """The bytes of an .npz."""
    return write_npz(**arrays)


def write_deflated(arrays: Arrays) -> bytes:
    """The bytes of an .npz whose files are deflated."""
    stream = io.BytesIO()
    np.savez_compressed(stream, **arrays)  # type: ignore[arg-type]
    return stream.getvalue()


def write_swapped(arrays: Arrays) -> bytes:
    """The bytes of an .npz of wider, big-endian numbers."""
    return write_npz(**{name: array.astype(">f8") for name, array in arrays.items()})


def write_json(arrays: Arrays) -> bytes:
    """Nested lists."""
    return json.dumps({name: array.tolist() for name, array in arrays.items()}).encode()


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("tokens.npz", write_stored),
        ("packed.npz", write_deflated),
        ("swapped.npz", write_swapped),
        ("tokens.safetensors", save),
        ("tokens.json", write_json),
    ],
    ids=["npz", "deflated", "big-endian", "safetensors", "json"],
)  # fmt: skip
def test_a_file_is_drawn_as_the_api_answers_it(
    page: Page, server_url: str, name: str, write: Callable[[Arrays], bytes]
) -> None:
    arrays = draw_arrays()
    act(page, lambda: open_file(page, name, write(arrays)))
    weights = ask(server_url, arrays)
    assert_painted(read_cells(page, L, S), weights[0], weights.max())


def test_an_array_without_a_name_is_the_query(page: Page, server_url: str) -> None:
    query = draw(L, D)
    act(page, lambda: open_file(page, "query.npy", write_npy(query)))
    weights = ask(server_url, {"query": query})
    assert_painted(read_cells(page, L, L), weights[0], weights.max())


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float64])
def test_other_floats_are_widened_or_rounded(page: Page, server_url: str, dtype: Any) -> None:
    query = draw(L, D).astype(dtype)
    act(page, lambda: open_file(page, "other.safetensors", save({"query": query})))
    weights = ask(server_url, {"query": query.astype(np.float32)})
    assert_painted(read_cells(page, L, L), weights[0], weights.max())


def test_eight_heads_of_1024_queries_and_keys(context: BrowserContext, eight_url: str) -> None:
    page = open_page(context.new_page(), eight_url, "?model=eight&random=3,3,1")
    query = draw(1, 1024, 64)
    act(page, lambda: open_file(page, "long.safetensors", save({"query": query})))
    assert page.locator("#head-size").inner_text() == "1024 \N{MULTIPLICATION SIGN} 1024"
    weights = ask(eight_url, {"query": query}, model="eight")[0]
    assert weights.shape == (8, 1024, 1024)
    for _ in range(7):
        page.keyboard.press("Escape")
        page.locator("#zoom-in").click()
    settle(page)
    view = page.locator("#cells").evaluate("(canvas) => JSON.parse(canvas.dataset.view)")
    shown = [round(view[name]) for name in ("top", "left", "rows", "columns")]
    assert 4 <= shown[2] < 64
    assert_seen(page, weights[0], view, float(weights.max()))


def assert_seen(
    page: Page, weights: np.ndarray[Any, Any], view: dict[str, float], high: float
) -> None:
    """The middles of all cells that are wholly in sight have the colours of their weights."""
    plot, picture = read_plot(page), read_canvas(page, "#cells")
    rows = np.arange(np.ceil(view["top"]), np.floor(view["top"] + view["rows"]), dtype=int)
    columns = np.arange(np.ceil(view["left"]), np.floor(view["left"] + view["columns"]), dtype=int)
    y = plot["y"] + ((rows + 0.5 - view["top"]) / view["rows"] * plot["height"]).astype(int)
    x = plot["x"] + ((columns + 0.5 - view["left"]) / view["columns"] * plot["width"]).astype(int)
    assert_painted(picture[y[:, None], x], weights[rows[:, None], columns], high)


def test_weights_alone_are_shown_without_asking(page: Page) -> None:
    weights = np.random.default_rng(1).dirichlet(np.ones(S), (2, 4, L)).astype(np.float32)
    open_file(page, "answer.npz", write_npz(attention_weights=weights))
    assert_painted(read_cells(page, L, S), weights[0, 0], weights[0].max())
    assert page.locator("#hiding:disabled").count() == 1
    page.locator("#item").select_option("1")
    page.locator('.thumbnail:has([data-head="3"])').click()
    settle(page)
    assert_painted(read_cells(page, L, S), weights[1, 3], weights[1].max())


@pytest.mark.parametrize("form", ["safetensors", "npz", "json"])
def test_labels_come_with_a_file(page: Page, form: str) -> None:
    arrays = draw_arrays()
    if form == "safetensors":
        notes = {"labels": json.dumps(ROWS), "key_labels": json.dumps(COLUMNS)}
        content = save(arrays, notes)
    elif form == "npz":
        content = write_npz(**arrays, labels=np.array(ROWS), key_labels=np.array(COLUMNS))
    else:
        lists = {name: array.tolist() for name, array in arrays.items()}
        content = json.dumps(lists | {"labels": ROWS, "key_labels": COLUMNS}).encode()
    act(page, lambda: open_file(page, f"named.{form}", content))
    assert page.locator("#labels").input_value() == " ".join(ROWS)
    assert page.locator(".switch").all_inner_texts() == COLUMNS


def test_a_batch_is_looked_at_item_by_item(page: Page, server_url: str) -> None:
    query = draw(3, L, D)
    act(page, lambda: open_file(page, "batch.safetensors", save({"query": query})))
    weights = ask(server_url, {"query": query})
    page.locator("#item").select_option("2")
    settle(page)
    assert_painted(read_cells(page, L, L), weights[2, 0], weights[2].max())


def test_pasted_json_is_asked(page: Page, server_url: str) -> None:
    arrays = draw_arrays()
    body = {name: array.tolist() for name, array in arrays.items()} | {"causal": "bottom_right"}
    choose(page, "source", "json")
    page.locator("#json").fill(json.dumps(body))
    act(page, lambda: page.locator("#take-json").click())
    weights = ask(server_url, arrays, causal="bottom_right")
    assert_painted(read_cells(page, L, S), weights[0], weights.max())
    assert page.locator('input[name="causal"][value="bottom_right"]').is_checked()


def test_a_dropped_file_is_opened(page: Page, server_url: str) -> None:
    query = draw(L, D)

    def drop() -> None:
        page.evaluate(
            """(bytes) => {
                const transfer = new DataTransfer();
                transfer.items.add(new File([Uint8Array.from(bytes)], "dropped.npz"));
                document.dispatchEvent(new DragEvent("drop", { dataTransfer: transfer }));
            }""",
            list(write_npz(query=query)),
        )

    act(page, drop)
    weights = ask(server_url, {"query": query})
    assert_painted(read_cells(page, L, L), weights[0], weights.max())
