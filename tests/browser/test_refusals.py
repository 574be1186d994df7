"""Files that cannot be read, are very large, or have odd names: all is said in words."""

import io
import json
import zipfile
from typing import Any

import httpx
import numpy as np
import pytest
from playwright.sync_api import BrowserContext, Page
from safetensors.numpy import save

from tests.browser.asking import draw, write_npy, write_npz
from tests.browser.drawing import TIMEOUT_MS, open_file, open_page, settle
from tests.integration.server_process import start_server

pytestmark = pytest.mark.browser
D = 6


def write_zip(files: dict[str, bytes]) -> bytes:
    """The bytes of an archive."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return stream.getvalue()


REFUSED = {
    "no.json": (b"{", "not JSON: "),
    "no.safetensors": (save({"other": draw(2, 3)}), "no tensor is named 'query'; tensors: other"),
    "no.npz": (
        write_npz(query=draw(4)),
        "'query' has shape [4], expected [query_length, d_model] or "
        "[batch_size, query_length, d_model]",
    ),
    "no.npy": (
        write_npy(np.asfortranarray(draw(2, 6))),
        "the .npy is in Fortran order; save numpy.ascontiguousarray(array)",
    ),
    "cut.npz": (write_npz(query=draw(2, 6))[:-30], "the archive has no directory"),
    "empty.safetensors": (
        save({"attention_weights": np.empty((2, 0, 3), np.float32)}),
        "'attention_weights' has shape [2,0,3], which holds no weights",
    ),
    "deep.json": (
        b'{"query": ' + b"[" * 30_000 + b"]" * 30_000 + b"}",
        "'query' is nested 30000 deep, expected 4 at most",
    ),
    "notes.npz": (
        write_zip({"read me.txt": b"hello"}),
        "array 'read me.txt': the bytes are not those of a .npy file",
    ),
    "objects.npz": (
        write_npz(query=np.array([{}, None], object)),
        "array 'query': the header of the .npy is not one that is read here",
    ),
    "ragged.json": (
        b'{"query": [[1, 2], [3]]}',
        "'query' is ragged: lists beside each other must be of one length",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_read_is_said(page: Page, name: str) -> None:
    content, text = REFUSED[name]
    file: Any = {"name": name, "mimeType": "application/octet-stream", "buffer": content}
    page.locator("#file").set_input_files(file)
    page.wait_for_selector("#error:visible")
    assert page.locator("#error").inner_text().startswith(text)


@pytest.mark.parametrize("name", ["__proto__", "constructor", "a/b", "naïve 名", ""])
def test_an_array_of_an_odd_name_is_sent_as_it_is(page: Page, server_url: str, name: str) -> None:
    arrays = {"query": draw(2, D), name: draw(3, 4)}
    refusal = httpx.post(f"{server_url}/v1/attention", content=save(arrays))
    npz = write_zip({f"{each}.npy": write_npy(array) for each, array in arrays.items()})
    open_file(page, "odd.npz", npz)
    assert page.locator("#error").inner_text() == f"400 {refusal.json()['error']}"


def test_a_list_longer_than_a_stack_is_read(page: Page) -> None:
    weights = np.full((1, 1, 200_000), 5e-6)
    open_file(page, "long.json", json.dumps({"attention_weights": weights.tolist()}).encode())
    assert page.locator("#head-size").inner_text() == "1 \N{MULTIPLICATION SIGN} 200000"


def test_a_folder_that_is_dropped_is_refused(page: Page) -> None:
    page.evaluate(
        """() => {
            const file = new File([], "folder");
            file.arrayBuffer = () => Promise.reject(new DOMException("gone", "NotFoundError"));
            const event = new DragEvent("drop");
            Object.defineProperty(event, "dataTransfer", { value: { files: [file] } });
            document.dispatchEvent(event);
        }"""
    )
    page.wait_for_selector("#error:visible")
    text = page.locator("#error").inner_text()
    assert text == "'folder' cannot be read; is it a folder, or gone?"


def test_300_megabytes_of_weights_are_shown(page: Page) -> None:
    heads, side = 18, 2048
    page.evaluate(
        """async ([heads, side]) => {
            const { encodeSafetensors } = await import("./page/formats/safetensors.js");
            const data = new Float32Array(heads * side * side).fill(1 / side);
            const tensor = { dtype: "F32", shape: [heads, side, side], data };
            const bytes = encodeSafetensors(new Map([["attention_weights", tensor]]));
            const transfer = new DataTransfer();
            transfer.items.add(new File([bytes], "large.safetensors"));
            document.dispatchEvent(new DragEvent("drop", { dataTransfer: transfer }));
        }""",
        [heads, side],
    )
    page.wait_for_selector('#head-size:text-is("2048 \N{MULTIPLICATION SIGN} 2048")')
    page.wait_for_selector('.thumbnail-note:text-is("11.0 bit")')
    settle(page)
    assert page.locator(".thumbnail").count() == heads + 1


def test_300_megabytes_of_no_known_form_are_refused(page: Page) -> None:
    page.evaluate(
        """() => {
            const transfer = new DataTransfer();
            transfer.items.add(new File([new Uint8Array(300e6).fill(7)], "film.mkv"));
            document.dispatchEvent(new DragEvent("drop", { dataTransfer: transfer }));
        }"""
    )
    page.wait_for_selector("#error:visible", timeout=TIMEOUT_MS)
    assert page.locator("#error").inner_text().startswith("not JSON: ")


def test_a_request_that_is_too_large_is_refused_in_words(context: BrowserContext) -> None:
    with start_server("--max-request-bytes", "100000") as server:
        page = open_page(context.new_page(), server.url)
        open_file(page, "large.safetensors", save({"query": draw(9000, D)}))
        page.wait_for_selector("#error:visible", timeout=TIMEOUT_MS)
        assert page.locator("#error").inner_text().startswith("413 the request body is ")
