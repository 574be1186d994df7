"""Masks and biases that do not fit: what came, what was expected, how to mend it."""

from typing import Any

import httpx
import numpy as np
import pytest
from numpy.typing import NDArray

from tests.integration.demo import B, H, L, S, check_close, draw_mask, draw_tokens, expect
from tests.integration.doors import DOORS, ask

TENSORS = draw_tokens()
FITTING = (
    f"expected [{B} or 1, {H} or 1, {L} or 1, {S}], [{B} or 1, {L} or 1, {S}] or [{L} or 1, {S}]"
)
RESHAPE = f"one row for each item and head: reshape it to [{B}, {H}, {L}, {S}]"
SWAP = f"its last two axes are [key_length, query_length]: swap them to [{L}, {S}]"


def refuse(client: httpx.Client, door: str, **masks: NDArray[Any]) -> str:
    """The text of the refusal of a request with these masks."""
    response = DOORS[door](client, TENSORS | masks)
    assert response.status_code == 400, response.text
    return str(response.json()["error"])


@pytest.mark.parametrize(
    ("shape", "reason"),
    [
        pytest.param((B * H, L, S), RESHAPE, id="rows-of-items-and-heads"),
        pytest.param((B * H, 1, S), RESHAPE.replace(f"{L}, {S}", f"1, {S}"), id="one-row-each"),
        pytest.param((S, L), SWAP, id="swapped-2-D"),
        pytest.param((B, S, L), SWAP, id="swapped-3-D"),
        pytest.param((B, H, S, L), SWAP, id="swapped-4-D"),
        pytest.param((S,), FITTING, id="1-D"),
        pytest.param((1, B, H, L, S), FITTING, id="5-D"),
        pytest.param((L, S + 1), FITTING, id="other-keys"),
        pytest.param((L, 1), FITTING, id="one-key"),
        pytest.param((B, H, L, 1), FITTING, id="one-key-4-D"),
        pytest.param((2, S), FITTING, id="other-rows"),
        pytest.param((2, L, S), FITTING, id="other-batch"),
        pytest.param((H, L, S), FITTING, id="heads-first"),
        pytest.param((B, 2, L, S), FITTING, id="other-heads"),
        pytest.param((0, S), FITTING, id="no-rows"),
    ],
)
@pytest.mark.parametrize("name", ["mask", "bias"])
def test_a_shape_that_does_not_fit(
    client: httpx.Client, name: str, shape: tuple[int, ...], reason: str
) -> None:
    array = np.ones(shape, bool if name == "mask" else np.float32)
    text = f"input '{name}' has shape {list(shape)}, {reason}"
    assert refuse(client, "v2-binary", **{name: array}) == text
    assert refuse(client, "v1-npz", **{name: array}) == text


@pytest.mark.parametrize("shape", [(S, B), (B, L), (B, 1, S), (S,), (1, S), (B, 0)], ids=str)
def test_a_key_mask_of_another_shape(client: httpx.Client, shape: tuple[int, ...]) -> None:
    text = (
        f"input 'key_mask' has shape {list(shape)}, expected [{B}, {S}] ([batch_size, key_length])"
    )
    assert refuse(client, "v2-binary", key_mask=np.ones(shape, bool)) == text


@pytest.mark.parametrize("door", ["v2-json", "v2-binary", "v1-npz", "v1-json"])
@pytest.mark.parametrize("number", [2, -1])
def test_an_integer_that_is_neither_0_nor_1(client: httpx.Client, door: str, number: int) -> None:
    mask = draw_mask(L, S).astype(np.int64)
    mask[3, 2] = number
    text = refuse(client, door, mask=mask)
    # The form of a position depends on whether the door has seen the shape yet.
    assert text.startswith(f"input 'mask' holds {number} at ")
    assert "0" in text.partition("expected")[2]
    assert "1" in text.partition("expected")[2]


@pytest.mark.parametrize("number", [0.5, -np.inf, -1e9, np.nan], ids=str)
@pytest.mark.parametrize("name", ["mask", "key_mask"])
def test_a_float_mask_of_other_numbers_is_sent_to_the_bias(
    client: httpx.Client, name: str, number: float
) -> None:
    mask = np.ones((B, S), np.float32)
    mask[3, 2] = number
    assert refuse(client, "v1-npz", **{name: mask}) == (
        f"input '{name}' holds {mask[3, 2]} at [3, 2], expected 0 or 1; additive values go into "
        "'bias'"
    )


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("name", ["mask", "key_mask"])
def test_v2_refuses_float_masks_with_the_cure(client: httpx.Client, name: str, dtype: str) -> None:
    datatype = f"FP{np.dtype(dtype).itemsize * 8}"
    assert refuse(client, "v2-binary", **{name: np.ones((B, S), dtype)}) == (
        f"input '{name}' has datatype {datatype}, expected BOOL, or integers 0 and 1; additive "
        "values go into 'bias'"
    )


@pytest.mark.parametrize("dtype", ["float16", "float64", "bool", "int64"])
@pytest.mark.parametrize("name", ["query", "bias"])
def test_v2_refuses_other_datatypes_with_the_cure(
    client: httpx.Client, name: str, dtype: str
) -> None:
    array = (TENSORS | {"bias": np.ones((L, S))})[name].astype(dtype)
    text = refuse(client, "v2-binary", **{name: array})
    assert text.startswith(f"input '{name}' has datatype ")
    assert "expected FP32: convert it before sending" in text


@pytest.mark.parametrize("data", [[2], [-1], [None], ["false"], [1.0], [[]], [{}]], ids=str)
def test_json_masks_hold_true_false_0_and_1_alone(client: httpx.Client, data: list[Any]) -> None:
    mask = {"name": "mask", "shape": [1, 1], "datatype": "BOOL", "data": data}
    query = {"name": "query", "shape": [1, 1, 6], "datatype": "FP32", "data": [1] * 6}
    response = client.post("/v2/models/demo/infer", json={"inputs": [query, mask]})
    assert response.status_code == 400
    assert response.json()["error"].startswith("input 'mask' ")


def test_a_mask_of_one_key_fits_where_there_is_one(client: httpx.Client) -> None:
    tensors = draw_tokens(B, L, 1) | {"mask": np.ones((L, 1), bool)}
    got = ask(client, "v2-binary", tensors)
    check_close(got, expect(tensors))
    assert (got["attention_weights"] == 1).all()
