"""What is taken away: a picture, numbers, and code that asks the same again."""

import csv
import io
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import BrowserContext, Page
from safetensors.numpy import save

from tests.browser.asking import Arrays, ask, draw, read_example
from tests.browser.drawing import (
    act,
    assert_painted,
    choose,
    open_file,
    open_page,
    pick_middles,
    read_plot,
    read_png,
)

pytestmark = pytest.mark.browser
TOKENS = 13
PNG_RATIO = 2  # pixels of the file in one of the screen
PNG_TITLE = 28
WRITE = {
    "httpx": "np.save('weights.npy', weights)\n",
    "tritonclient": "np.save('weights.npy', weights)\nclient.close()\n",
}


def save_by(page: Page, button: str) -> tuple[str, bytes]:
    """Press a button that saves a file: its name and content."""
    with page.expect_download() as download:
        page.locator(button).click()
    return download.value.suggested_filename, Path(download.value.path()).read_bytes()


def test_the_png_shows_what_the_screen_shows(page: Page, server_url: str) -> None:
    weights = ask(server_url, read_example(server_url))
    name, content = save_by(page, "#save-png")
    assert name == "demo-head-0.png"
    plot = {side: size * PNG_RATIO for side, size in read_plot(page).items()}
    plot["y"] += PNG_TITLE * PNG_RATIO
    pixels = pick_middles(read_png(content), plot, TOKENS, TOKENS)
    assert_painted(pixels, weights[0], weights.max())


def test_the_csv_has_every_digit(page: Page, server_url: str) -> None:
    weights = ask(server_url, read_example(server_url))
    page.locator('.thumbnail:has([data-head="2"])').click()
    name, content = save_by(page, "#save-csv")
    assert name == "demo-head-2.csv"
    words = page.locator("#labels").input_value().split(" ")
    head, *rows = csv.reader(io.StringIO(content.decode()))
    assert head == ["query", *words]
    assert [row[0] for row in rows] == words
    numbers = np.array([row[1:] for row in rows], np.float32)
    assert np.array_equal(numbers, weights[2])


def test_words_with_commas_and_quotes_come_through_the_csv(page: Page) -> None:
    query, words = draw(2, 6), ['so, "so"', "b"]
    body = f'{{"query": {query.tolist()}, "labels": ["so, \\"so\\"", "b"]}}'
    act(page, lambda: open_file(page, "words.json", body.encode()))
    _, content = save_by(page, "#save-csv")
    rows = list(csv.reader(io.StringIO(content.decode())))
    assert rows[0] == ["query", *words]
    assert rows[1][0] == words[0]


def test_the_npz_has_all_heads_and_can_be_opened_again(page: Page, server_url: str) -> None:
    weights = ask(server_url, read_example(server_url))
    name, content = save_by(page, "#save-npz")
    assert name == "attention.npz"
    arrays = np.load(io.BytesIO(content))
    assert np.array_equal(arrays["attention_weights"], weights)
    assert arrays["output"].shape == (TOKENS, 6)
    open_file(page, "again.npz", content)
    assert page.locator("#head-size").inner_text() == f"{TOKENS} \N{MULTIPLICATION SIGN} {TOKENS}"


def read_code(page: Page, language: str) -> str:
    """What the page says to copy, copied."""
    page.locator("#copy-as").click()
    choose(page, "language", language)
    page.locator("#copy").click()
    page.wait_for_selector('#copied:text-is("Copied")')
    return str(page.evaluate("navigator.clipboard.readText()"))


def run_code(code: str, language: str, folder: Path, **variables: str) -> np.ndarray[Any, Any]:
    """The weights that code prints or has, run where it was saved."""
    command = ["/bin/sh", "-c"] if language == "curl" else [sys.executable, "-c"]
    done = subprocess.run(
        [*command, code + WRITE.get(language, "")],
        cwd=folder,
        env=os.environ | variables,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    if (folder / "answer.npz").exists():
        return np.asarray(np.load(folder / "answer.npz")["attention_weights"])
    if language == "curl":
        import json

        return np.array(json.loads(done.stdout)["attention_weights"], np.float32)
    return np.asarray(np.load(folder / "weights.npy"))


@pytest.mark.parametrize("language", ["curl", "httpx", "tritonclient"])
def test_code_gives_the_numbers_that_are_shown(
    page: Page, server_url: str, language: str, tmp_path: Path
) -> None:
    act(page, lambda: page.locator(".switch").nth(8).click())
    act(page, lambda: choose(page, "causal", "top_left"))
    weights = run_code(read_code(page, language), language, tmp_path)
    mask = np.ones(TOKENS, np.bool_)
    mask[8] = False
    expected = ask(server_url, read_example(server_url) | {"key_mask": mask}, causal="top_left")
    assert np.array_equal(weights.reshape(expected.shape), expected)


@pytest.mark.parametrize("language", ["curl", "httpx", "tritonclient"])
def test_code_with_large_tensors_reads_the_file_that_is_saved_with_it(
    page: Page, server_url: str, language: str, tmp_path: Path
) -> None:
    mask = np.random.default_rng(3).random((200, 150)) < 0.5
    arrays = {"query": draw(3, 200, 6), "key": draw(3, 150, 6), "mask": mask}
    act(page, lambda: open_file(page, "large.safetensors", save(arrays)))
    code = read_code(page, language)
    assert len(code) < 1500
    name, content = save_by(page, "#save-request")
    (tmp_path / name).write_bytes(content)
    weights = run_code(code, language, tmp_path)
    assert np.array_equal(weights, ask(server_url, arrays))


def test_integers_stay_integers_in_code(page: Page, server_url: str, tmp_path: Path) -> None:
    arrays: Arrays = {"query": draw(2, 4, 6), "mask": np.tri(4, dtype=np.int64)}
    act(page, lambda: open_file(page, "whole.safetensors", save(arrays)))
    code = read_code(page, "tritonclient")
    assert "np.int64" in code
    assert np.array_equal(run_code(code, "tritonclient", tmp_path), ask(server_url, arrays))


def test_code_names_the_model_that_is_chosen(context: BrowserContext, eight_url: str) -> None:
    page = open_page(context.new_page(), eight_url, "?model=eight&random=3,3,1")
    page.locator("#copy-as").click()
    choose(page, "language", "curl")
    assert "model=eight&version=1" in page.locator("#code").inner_text()
