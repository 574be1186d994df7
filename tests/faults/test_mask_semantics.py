"""Faults of masks: which keys a query sees, and what becomes of one that sees none."""

from typing import Any

import httpx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.faults.any_request import LOWEST, WEIGHTS, AnyRequest, draw_request
from tests.integration.demo import (
    DEMO,
    TOLERANCE,
    Arrays,
    D,
    H,
    check_close,
    draw_bias,
    draw_tokens,
    expect,
)
from tests.integration.doors import DOORS, ask, read_answer

B, L, S = 2, 4, 5
BLIND = 1  # the row that sees no key
TENSORS = draw_tokens(B, L, S)
BINARY_DOORS = ["v2-binary", "v1-npz", "v1-safetensors"]


def hide_row(query_length: int, key_length: int) -> Arrays:
    """A mask in whose row `BLIND` no key is visible."""
    mask = np.ones((1, 1, query_length, key_length), bool)
    mask[..., BLIND, :] = False
    return {"mask": mask}


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("sizes", [(1, 4, 4), (2, 4, 5)], ids=str)
@pytest.mark.parametrize("door", DOORS)
def test_a_row_that_sees_no_key_is_the_mean_of_all_values(
    client: httpx.Client, door: str, sizes: tuple[int, int, int], weights: str
) -> None:
    """One input, three answers elsewhere: NaN, zeros, the mean.

    pytorch/pytorch #41508, #26098, #27968, #103963; microsoft/onnxruntime #28904.
    """
    tokens = draw_tokens(*sizes)
    got = ask(client, door, tokens | hide_row(*sizes[1:]), weights=weights)
    values = tokens["value"].astype(np.float64) @ DEMO.W_v.T.astype(np.float64) + DEMO.b_v
    right = values.mean(axis=1) @ DEMO.fc_out.T.astype(np.float64) + DEMO.b_out  # [B, D]
    np.testing.assert_allclose(got["output"][:, BLIND], right, rtol=0, atol=TOLERANCE)
    if weights != "none":
        assert (got["attention_weights"][..., BLIND, :] == np.float32(1 / sizes[2])).all()


@given(request=draw_request())
@settings(max_examples=400)
def test_any_hiding_at_any_door_is_that_of_the_formula(
    client: httpx.Client, request: AnyRequest
) -> None:
    """Alignments of causal masks, ranks of masks, and hidings together: all of their kind.

    pytorch/pytorch #103082, #108108, #115111; ml-explore/mlx #2835; onnx/onnx #8068;
    microsoft/onnxruntime #29020; NVIDIA-NeMo/Automodel #2658.
    """
    right = expect(request.tensors, **request.options)
    got = ask(client, request.door, request.tensors, **request.options)
    check_close(got, right)
    if request.options["weights"] == "per_head":
        assert not got["attention_weights"][right["attention_weights"] == 0].any()


@pytest.mark.parametrize("name", ["mask", "key_mask"])
@pytest.mark.parametrize("door", BINARY_DOORS)
@given(data=st.data())
@settings(max_examples=40)
def test_any_byte_but_nought_is_true_wherever_booleans_are_bytes(
    client: httpx.Client, door: str, name: str, data: st.DataObject
) -> None:
    """Bytes 01 00 02 FF: numpy leaves them undefined (triton-inference-server/server, BOOL)."""
    shape = (L, S) if name == "mask" else (B, S)
    count = int(np.prod(shape))
    raw = data.draw(st.binary(min_size=count, max_size=count) | st.just(b"\1\0\2\xff" * 5))
    odd = np.frombuffer(raw[:count], np.bool_).reshape(shape)
    plain = np.frombuffer(raw[:count], np.uint8).reshape(shape) != 0
    assert odd.tobytes() == raw[:count]
    check_close(ask(client, door, TENSORS | {name: odd}), expect(TENSORS | {name: plain}))


@pytest.mark.parametrize("name", ["mask", "bias"])
@pytest.mark.parametrize("door", DOORS)
def test_three_axes_begin_with_the_batch_where_batch_and_heads_are_equal(
    client: httpx.Client, door: str, name: str
) -> None:
    """Item 0 hides the keys 2 and 3 in all heads; right-aligned, head 0 would hide them in all.

    pytorch/pytorch #64706, #28884; onnx/onnx #8108; microsoft/onnxruntime #27464.
    """
    visible = np.ones((H, 4, 4), bool)
    visible[0, :, 2:] = False
    bias = np.where(visible, 0, -1e30).astype(np.float32)
    tensors = draw_tokens(H, 4, 4) | {name: visible if name == "mask" else bias}
    weights = ask(client, door, tensors)["attention_weights"]
    assert (weights[0, :, :, 2:] == 0).all()
    assert (weights[1:] > 0).all()
    assert (weights[0, :, :, :2] > 0).all()


@pytest.mark.parametrize("lowest", [LOWEST, -np.inf], ids=str)
@pytest.mark.parametrize("door", BINARY_DOORS)
def test_hidings_that_meet_are_no_sum(client: httpx.Client, door: str, lowest: float) -> None:
    """Twice the lowest float is -inf, and a row of it NaN (NVIDIA-NeMo/Automodel #2658)."""
    padding = np.array([[True] * S, [True, True, False, False, False]])
    bias = np.where(padding[:, None, None], draw_bias(B, 1, L, S), np.float32(lowest))
    tensors = TENSORS | {"bias": bias, "key_mask": padding, "mask": np.tri(L, S, dtype=bool)}
    got = ask(client, door, tensors, causal=True)
    check_close(got, expect(tensors, causal=True))


@pytest.mark.parametrize("door", DOORS)
def test_padded_queries_are_computed_like_all_others(client: httpx.Client, door: str) -> None:
    """Padding hides keys, no query becomes zeros.

    pytorch/pytorch #41508 (comments); phlippe/uvadlc_notebooks #110.
    """
    query = TENSORS["query"]
    real = np.array([[True, True, False, False], [True] * L])
    got = ask(client, door, {"query": query, "key_mask": real})
    right = expect({"query": query, "key_mask": real})
    check_close(got, right)
    assert np.abs(right["output"][0, 2:]).min() > 100 * TOLERANCE


@pytest.mark.parametrize("door", DOORS)
def test_a_mask_of_torch_means_the_same_once_it_is_inverted(
    client: httpx.Client, door: str
) -> None:
    """True hides there and shows here: sent as it is, it gives the answer of its opposite.

    pytorch/pytorch #120668, #27968; rasbt/LLMs-from-scratch #1061.
    """
    hidden = np.triu(np.ones((L, S), bool), 1)
    right = expect(TENSORS, causal=True)
    check_close(ask(client, door, TENSORS | {"mask": ~hidden}), right)
    inverse = ask(client, door, TENSORS | {"mask": hidden})["attention_weights"]
    rows = hidden.any(axis=-1)
    assert (inverse[:, :, rows][:, :, ~hidden[rows]] == 0).all()


@pytest.mark.parametrize("key_length", [1, 5])
def test_one_true_key_takes_all_the_weight(client: httpx.Client, key_length: int) -> None:
    """The sense of a mask in one number: 1.0 at the key that is true (pytorch/pytorch #120668)."""
    tokens = draw_tokens(B, L, key_length)
    for chosen in range(key_length):
        only = np.zeros((L, key_length), bool)
        only[:, chosen] = True
        for door in DOORS:
            weights = ask(client, door, tokens | {"mask": only})["attention_weights"]
            np.testing.assert_array_equal(weights, np.broadcast_to(only, weights.shape))


@pytest.mark.parametrize("where", ["body", "query string"])
def test_a_soft_cap_is_refused_and_not_left_out(client: httpx.Client, where: str) -> None:
    """A cap after the mask would let hidden keys leak; there is none (onnx/onnx #7865, #7867)."""
    options: dict[str, Any] = {"softcap": 5}
    door = "v1-json" if where == "body" else "v1-npz"
    response = DOORS[door](client, TENSORS, **options)
    expected = {
        "body": "input 'softcap' is unknown, expected some of query, key, value, mask, key_mask, "
        "bias",
        "query string": 'option "softcap" of the query string is unknown, expected some of model, '
        "version, causal, weights, heads, top_k, format",
    }
    assert (response.status_code, response.json()) == (400, {"error": expected[where]})


def test_the_demo_that_these_tests_ask_has_an_offset_in_every_output(client: httpx.Client) -> None:
    """Else zeros and the output of no key could not be told apart."""
    zeros = {"query": np.zeros((1, 2, D), np.float32)}
    output = read_answer(DOORS["v1-npz"](client, zeros))["output"]
    assert (output != 0).all()
