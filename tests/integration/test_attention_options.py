"""Options of /v1/attention, tensors without a batch axis, and what is converted."""

from typing import Any

import httpx
import numpy as np
import pytest

from tests.integration.demo import (
    Arrays,
    B,
    D,
    H,
    L,
    S,
    check_close,
    draw_bias,
    draw_mask,
    draw_tokens,
    expect,
)
from tests.integration.doors import (
    ATTENTION,
    DOORS,
    NPZ,
    V1_DOORS,
    ask,
    read_answer,
    write_nested,
    write_npz,
)

TENSORS = draw_tokens()


@pytest.mark.parametrize("weights", ["none", "per_head", "mean"])
@pytest.mark.parametrize("door", ["v1-json", "v1-npz"])
def test_weights_and_causal_are_options_of_body_and_query_string(
    client: httpx.Client, door: str, weights: str
) -> None:
    got = ask(client, door, TENSORS, weights=weights, causal="bottom_right")
    check_close(got, expect(TENSORS, weights=weights, causal="bottom_right"))


def test_options_of_a_json_body_may_stand_in_the_query_string(client: httpx.Client) -> None:
    params = {"weights": "mean", "causal": "true"}
    response = client.post(ATTENTION, json=write_nested(TENSORS), params=params)
    check_close(read_answer(response), expect(TENSORS, weights="mean", causal=True))


@pytest.mark.parametrize(
    ("body", "params", "text"),
    [
        pytest.param(
            {"causal": True},
            {"causal": "true"},
            "option 'causal' is in the query string and in the body, expected once",
            id="both",
        ),
        pytest.param(
            {},
            {"causl": "true"},
            'option "causl" of the query string is unknown, expected some of model, version, '
            "causal, weights, heads, top_k, format",
            id="unknown",
        ),
        pytest.param(
            {},
            {"causal": ["true", "false"]},
            "option 'causal' comes twice, expected once",
            id="twice",
        ),
        pytest.param(
            {},
            {"causal": "yes"},
            'parameter \'causal\' is "yes", expected true, false, "top_left" (as true) or '
            '"bottom_right"',
            id="causal",
        ),
        pytest.param(
            {"causal": 1},
            {},
            "parameter 'causal' is 1, expected true, false, \"top_left\" (as true) or "
            '"bottom_right"',
            id="causal-number",
        ),
        pytest.param(
            {"weights": "all"},
            {},
            'parameter \'weights\' is "all", expected "none", "per_head", "mean" or "top_k"',
            id="weights",
        ),
        pytest.param({"model": 5}, {}, "option 'model' is 5, expected a string", id="model-number"),
    ],
)
def test_an_option_that_is_not_understood_is_refused(
    client: httpx.Client, body: dict[str, Any], params: dict[str, Any], text: str
) -> None:
    response = client.post(ATTENTION, json=write_nested(TENSORS) | body, params=params)
    assert (response.status_code, response.json()) == (400, {"error": text})


def drop_batch(tensors: Arrays) -> Arrays:
    """The first item, without a batch axis."""
    return {name: array[0] for name, array in tensors.items()}


@pytest.mark.parametrize("weights", ["none", "per_head", "mean"])
@pytest.mark.parametrize("door", V1_DOORS)
def test_tensors_without_a_batch_axis_come_back_without_one(
    client: httpx.Client, door: str, weights: str
) -> None:
    tensors = TENSORS | {
        "mask": draw_mask(B, H, L, S),
        "bias": draw_bias(B, H, L, S),
        "key_mask": draw_mask(B, S, seed=4) | (np.arange(S) < 2),
    }
    right = expect({name: array[:1] for name, array in tensors.items()}, weights=weights)
    got = ask(client, door, drop_batch(tensors), weights=weights)
    check_close(got, drop_batch(right))


@pytest.mark.parametrize("shape", [(L, S), (1, S), (1, L, S), (H, 1, S), (1, 1, S)], ids=str)
def test_masks_without_a_batch_axis_have_rows_or_heads_and_rows(
    client: httpx.Client, shape: tuple[int, ...]
) -> None:
    mask, tokens = draw_mask(*shape), drop_batch(TENSORS)
    four_axes = mask.reshape((1,) * (4 - mask.ndim) + mask.shape)
    right = expect({name: array[:1] for name, array in TENSORS.items()} | {"mask": four_axes})
    check_close(ask(client, "v1-npz", tokens | {"mask": mask}), drop_batch(right))


def test_a_batch_axis_on_some_tensors_only_is_refused(client: httpx.Client) -> None:
    mixed = TENSORS | {"query": TENSORS["query"][0]}
    response = DOORS["v1-json"](client, mixed)
    assert (response.status_code, response.json()) == (
        400,
        {
            "error": f"input 'key' has shape [{B}, {S}, {D}] beside a query without a batch "
            "axis; leave the batch axis out of all tensors, or of none"
        },
    )


@pytest.mark.parametrize("door", ["v1-npz", "v1-safetensors"])
def test_fp64_and_fp16_are_converted_and_the_answer_says_so(
    client: httpx.Client, door: str
) -> None:
    sent: Arrays = {
        "query": TENSORS["query"].astype(np.float64),
        "key": TENSORS["key"].astype(np.float16),
        "value": TENSORS["value"],
        "bias": draw_bias(L, S).astype(np.float64),
    }
    response = DOORS[door](client, sent, weights="per_head")
    check_close(read_answer(response), expect(sent))
    assert response.headers["Limelight-Converted"] == "query FP64, key FP16, bias FP64"
    answer = DOORS[door](client, sent, format="json").json()
    assert answer["converted"] == {"query": "FP64", "key": "FP16", "bias": "FP64"}


def test_nothing_is_said_to_be_converted_that_was_not(client: httpx.Client) -> None:
    response = DOORS["v1-npz"](client, TENSORS)
    assert "Limelight-Converted" not in response.headers
    assert DOORS["v1-json"](client, TENSORS).json().get("converted", {}) == {}


def test_a_number_beyond_fp32_is_refused_with_its_position(client: httpx.Client) -> None:
    sent = TENSORS | {"key": TENSORS["key"].astype(np.float64)}
    sent["key"][2, 3, 1] = 1e39
    response = DOORS["v1-npz"](client, sent)
    assert (response.status_code, response.json()) == (
        400,
        {"error": "input 'key' holds 1e+39 at [2, 3, 1], which FP32 cannot hold"},
    )


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "attn_mask",
            "input 'attn_mask' is not known here: send 'mask', where true means visible; in "
            "nn.MultiheadAttention's attn_mask true means hidden, so invert it; a float "
            "attn_mask goes into 'bias'",
        ),
        (
            "key_padding_mask",
            "input 'key_padding_mask' is not known here: send 'key_mask', where true means a "
            "real key; in nn.MultiheadAttention's key_padding_mask true means padding, so "
            "invert it",
        ),
        (
            "attention_mask",
            "input 'attention_mask' is not known here: send 'key_mask' [batch_size, "
            "key_length]; the attention_mask of a tokenizer has the same sense, 1 = a real key",
        ),
    ],
)
@pytest.mark.parametrize("door", DOORS)
def test_names_from_elsewhere_are_refused_with_the_translation(
    client: httpx.Client, door: str, name: str, text: str
) -> None:
    response = DOORS[door](client, TENSORS | {name: np.ones((B, S), bool)})
    assert (response.status_code, response.json()) == (400, {"error": text})


def test_npz_of_integers_is_refused_for_tokens(client: httpx.Client) -> None:
    sent = TENSORS | {"query": np.ones((B, L, D), np.int64)}
    response = client.post(ATTENTION, content=write_npz(sent), headers={"Content-Type": NPZ})
    assert response.status_code == 400
    assert response.json()["error"].startswith("input 'query' has datatype INT64, expected FP32")
