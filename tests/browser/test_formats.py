"""The page's readers and writers of files agree with numpy and safetensors."""

import base64
import io
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of
from numpy.typing import NDArray
from playwright.sync_api import Browser, Page
from safetensors.numpy import load, save

pytestmark = pytest.mark.browser
DTYPES = ["?", "i1", "u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f2", "<f4", "<f8"]
SWAPPED = [">i4", ">i8", ">f2", ">f4", ">f8"]
SHAPES = arrays_of.array_shapes(max_dims=4, max_side=5)
READ = """async ([module, name, text]) => {
    const formats = await import(`./page/formats/${module}.js`);
    const { encodeSafetensors } = await import("./page/formats/safetensors.js");
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const found = await formats[name](name === "decodeNpy" ? bytes : bytes.buffer);
    const tensors = found.tensors ?? new Map([["a", found.tensor]]);
    return btoa(String.fromCharCode(...encodeSafetensors(tensors)));
}"""
WRITE = """async (text) => {
    const { encodeNpz } = await import("./page/formats/npz.js");
    const { decodeSafetensors } = await import("./page/formats/safetensors.js");
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const blob = encodeNpz(decodeSafetensors(bytes.buffer).tensors);
    return btoa(String.fromCharCode(...new Uint8Array(await blob.arrayBuffer())));
}"""


@pytest.fixture(scope="module", name="blank")
def open_blank(browser: Browser, server_url: str) -> Iterator[Page]:
    """A page of the server that is asked for its modules alone."""
    page = browser.new_page()
    page.goto(f"{server_url}/v2")
    page.goto(f"{server_url}/")
    yield page
    page.close()


def read(page: Page, module: str, name: str, content: bytes) -> dict[str, NDArray[Any]]:
    """What a reader of the page finds, written as safetensors by the page."""
    text = base64.b64encode(content).decode()
    return load(base64.b64decode(page.evaluate(READ, [module, name, text])))


def widen(array: NDArray[Any]) -> NDArray[Any]:
    """Floats are float32 in the page."""
    with np.errstate(over="ignore"):
        return array.astype(np.float32) if array.dtype.kind == "f" else array


def assert_same(found: NDArray[Any], array: NDArray[Any]) -> None:
    """Shape, kind and numbers agree; NaN agrees with NaN."""
    assert found.shape == array.shape
    np.testing.assert_array_equal(found, widen(array), strict=False)


def draw_array(dtypes: list[str]) -> st.SearchStrategy[NDArray[Any]]:
    """An array of any of these datatypes, of any shape."""
    return st.sampled_from(dtypes).flatmap(lambda dtype: arrays_of.arrays(dtype, SHAPES))


@given(array=draw_array(DTYPES + SWAPPED))
def test_npy(blank: Page, array: NDArray[Any]) -> None:
    stream = io.BytesIO()
    np.save(stream, array)
    assert_same(read(blank, "npy", "decodeNpy", stream.getvalue())["a"], array)


@given(first=draw_array(DTYPES), second=draw_array(DTYPES), packed=st.booleans())
def test_npz(blank: Page, first: NDArray[Any], second: NDArray[Any], packed: bool) -> None:
    stream = io.BytesIO()
    (np.savez_compressed if packed else np.savez)(stream, first=first, second=second)
    found = read(blank, "npz", "decodeNpz", stream.getvalue())
    assert_same(found["first"], first)
    assert_same(found["second"], second)


@given(first=draw_array(DTYPES), second=draw_array(DTYPES))
def test_safetensors(blank: Page, first: NDArray[Any], second: NDArray[Any]) -> None:
    content = save({"first": first, "second": second})
    found = read(blank, "safetensors", "decodeSafetensors", content)
    assert_same(found["first"], first)
    assert_same(found["second"], second)


@given(first=draw_array(["?", "i1", "<i4", "<i8", "<f4"]), second=draw_array(["?", "<f4"]))
def test_an_npz_that_the_page_writes(
    blank: Page, first: NDArray[Any], second: NDArray[Any]
) -> None:
    text = base64.b64encode(save({"first": first, "second": second})).decode()
    found = np.load(io.BytesIO(base64.b64decode(blank.evaluate(WRITE, text))))
    for name, array in (("first", first), ("second", second)):
        assert found[name].dtype == array.dtype
        assert_same(found[name], array)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_every_half_is_read(blank: Page, dtype: Any) -> None:
    halves = np.array(range(0, 2**16, 7), np.uint16).view(dtype)
    found = read(blank, "safetensors", "decodeSafetensors", save({"a": halves}))["a"]
    np.testing.assert_array_equal(found, halves.astype(np.float32))


@given(content=st.binary(max_size=200))
def test_other_bytes_are_refused_in_a_sentence(blank: Page, content: bytes) -> None:
    refusal = blank.evaluate(
        """async (text) => {
            const { readFile } = await import("./page/formats/file.js");
            const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
            try {
                await readFile(bytes.buffer);
                return "";
            } catch (error) {
                return `${error.constructor.name}: ${error.message}`;
            }
        }""",
        base64.b64encode(content).decode(),
    )
    assert refusal.startswith("InputError: ")


@given(values=st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1))
def test_a_number_is_written_so_that_the_same_float32_is_read(
    blank: Page, values: list[float]
) -> None:
    texts = blank.evaluate(
        """async (values) => {
            const { writeFloat32 } = await import("./page/formats/dtypes.js");
            return values.map(writeFloat32);
        }""",
        values,
    )
    assert np.array_equal(np.array(texts, np.float32), np.array(values, np.float32))
    assert all(len(text) <= 22 for text in texts)
