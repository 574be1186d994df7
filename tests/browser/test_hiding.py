"""Keys that are hidden by hand."""

import numpy as np
import pytest
from playwright.sync_api import Page
from safetensors.numpy import save

from tests.browser.asking import ask, draw, read_example
from tests.browser.drawing import (
    ZERO,
    act,
    assert_painted,
    choose,
    click_cell,
    open_file,
    read_cells,
)

pytestmark = pytest.mark.browser
TOKENS = 13


def hide(*keys: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """A key_mask that hides these keys of the example."""
    mask = np.ones(TOKENS, np.bool_)
    mask[list(keys)] = False
    return mask


def test_a_key_is_switched_off_by_clicking_its_name(page: Page, server_url: str) -> None:
    act(page, lambda: click_cell(page, -1, 8, TOKENS, TOKENS))
    weights = ask(server_url, read_example(server_url) | {"key_mask": hide(8)})
    pixels = read_cells(page, TOKENS, TOKENS)
    assert (pixels[:, 8] == ZERO).all()
    assert not (pixels == ZERO).all(axis=-1)[:, :8].any()
    assert_painted(pixels, weights[0], weights.max())
    assert page.locator("#hidden-keys").input_value() == "8"


def test_a_key_is_switched_off_and_on_again_by_its_switch(page: Page, server_url: str) -> None:
    switch = page.locator(".switch").nth(3)
    act(page, switch.click)
    assert switch.get_attribute("aria-pressed") == "false"
    assert (read_cells(page, TOKENS, TOKENS)[:, 3] == ZERO).all()
    act(page, switch.click)
    weights = ask(server_url, read_example(server_url))
    assert_painted(read_cells(page, TOKENS, TOKENS), weights[0], weights.max())


def test_keys_are_switched_off_by_a_list(page: Page, server_url: str) -> None:
    field = page.locator("#hidden-keys")

    def write() -> None:
        field.fill("11, 0 2-4")
        field.press("Enter")

    act(page, write)
    weights = ask(server_url, read_example(server_url) | {"key_mask": hide(0, 2, 3, 4, 11)})
    assert_painted(read_cells(page, TOKENS, TOKENS), weights[0], weights.max())
    assert field.input_value() == "0, 2-4, 11"
    act(page, lambda: page.locator("#show-all-keys").click())
    assert field.input_value() == ""


def test_a_list_that_names_no_key_is_refused(page: Page) -> None:
    page.locator("#hidden-keys").fill("3, 13")
    page.locator("#hidden-keys").press("Enter")
    note = page.locator("#hidden-note")
    assert note.inner_text() == ("'13' is no key; expected numbers from 0 to 12, such as 0, 3-7")


@pytest.mark.parametrize("causal", ["top_left", "bottom_right"])
def test_later_keys_are_hidden(page: Page, server_url: str, causal: str) -> None:
    arrays = {"query": draw(5, 6), "key": draw(7, 6, seed=2)}
    act(page, lambda: open_file(page, "uneven.safetensors", save(arrays)))
    act(page, lambda: choose(page, "causal", causal))
    weights = ask(server_url, arrays, causal=causal)
    assert (weights == 0).any()
    assert_painted(read_cells(page, 5, 7), weights[0], weights.max())


def test_a_key_mask_that_came_with_a_file_can_be_changed(page: Page, server_url: str) -> None:
    query = draw(2, 5, 6)
    mask = np.array([[1, 1, 0, 1, 1], [1, 0, 0, 1, 0]], np.int64)
    content = save({"query": query, "key_mask": mask})
    act(page, lambda: open_file(page, "padded.safetensors", content))
    assert page.locator("#hidden-keys").input_value() == "2"
    page.locator("#item").select_option("1")
    act(page, lambda: page.locator(".switch").nth(1).click())
    assert page.locator("#hidden-keys").input_value() == "2, 4"
    changed = np.array([[1, 1, 0, 1, 1], [1, 1, 0, 1, 0]], np.bool_)
    weights = ask(server_url, {"query": query, "key_mask": changed})
    assert_painted(read_cells(page, 5, 5), weights[1, 0], weights[1].max())
