"""Faults of numbers: scores beyond the fill of a mask, half precision, and what is not finite."""

from typing import Any

import httpx
import numpy as np
import pytest

from model.reference import project
from tests.integration.demo import DEMO, Arrays, B, D, H, check_close, draw_tokens, expect
from tests.integration.doors import (
    ATTENTION,
    DOORS,
    INFER,
    JSON,
    NPZ,
    SAFETENSORS,
    ask,
    read_answer,
    write_npz,
    write_safetensors,
    write_v2_binary,
    write_v2_json,
)

L, S = 5, 7
FILL = -1e9
HIDDEN = 0
SEEN = np.arange(S) != HIDDEN
HIDINGS: dict[str, Arrays] = {
    "mask": {"mask": np.broadcast_to(SEEN, (L, S)).copy()},
    "key_mask": {"key_mask": np.broadcast_to(SEEN, (B, S)).copy()},
    "bias": {"bias": np.where(SEEN, 0, np.float32(-1e30))[None].astype(np.float32)},
}


def compute_scores(tensors: Arrays) -> Any:
    """The scaled scores ``[B, H, L, S]`` in float64."""
    q = project(tensors["query"], DEMO.W_q, DEMO.b_q).reshape(B, L, H, D // H)
    k = project(tensors["key"], DEMO.W_k, DEMO.b_k).reshape(B, S, H, D // H)
    return np.einsum("blhk,bshk->bhls", q, k) / np.sqrt(D // H)


@pytest.mark.parametrize("hiding", HIDINGS)
@pytest.mark.parametrize("door", DOORS)
def test_a_hidden_key_is_not_beaten_by_scores_below_the_usual_fill(
    client: httpx.Client, door: str, hiding: str
) -> None:
    """A key filled with -1e9 takes all the weight where the others score less.

    TransformerLensOrg/TransformerLens #319, #366; ohdearquant/lattice #361, #374.
    """
    tensors = draw_tokens(B, L, S)
    tensors["query"], tensors["key"] = (
        (tensors[name] * np.float32(1e6)) for name in ("query", "key")
    )
    tensors["key"][:] = tensors["key"][:, :1] * np.linspace(1, 2, S, dtype="f4")[:, None]
    scores = compute_scores(tensors)
    below = (scores[..., SEEN] < FILL).all(axis=-1)
    wins = scores[..., HIDDEN] + FILL > scores[..., SEEN].max(axis=-1)
    assert (below & wins).any(), "a fill, set or added, would do"
    weights = ask(client, door, tensors | HIDINGS[hiding])["attention_weights"]
    assert (weights[..., HIDDEN] == 0).all()
    np.testing.assert_allclose(weights.sum(axis=-1), 1, rtol=0, atol=1e-6)


@pytest.mark.parametrize("form", [NPZ, SAFETENSORS])
def test_scores_beyond_half_precision_do_not_overflow(client: httpx.Client, form: str) -> None:
    """FP16 tensors are computed in FP32: their products leave FP16 long before the softmax.

    pytorch/pytorch #60939; onnx/onnx #6501.
    """
    sent = {name: (a * 2e3).astype(np.float16) for name, a in draw_tokens(B, L, S).items()}
    assert np.abs(compute_scores(sent)).max() > 10 * float(np.finfo(np.float16).max)
    write = write_npz if form == NPZ else write_safetensors
    response = client.post(
        ATTENTION,
        content=write(sent),
        params={"weights": "per_head"},
        headers={"Content-Type": form},
    )
    got, right = read_answer(response), expect(sent)
    np.testing.assert_allclose(
        got["attention_weights"], right["attention_weights"], rtol=0, atol=1e-4
    )
    np.testing.assert_allclose(got["output"], right["output"], rtol=1e-4, atol=0.1)


UNLIKE_JSON = (
    "output 'output' holds NaN or an infinity, which JSON cannot say; ask for binary data (V2: "
    "parameter binary_data; /v1: ?format=npz) or send finite inputs"
)


def fill_value(number: float) -> Arrays:
    """Tensors with one extreme number among the values."""
    tensors = draw_tokens(B, L, S)
    tensors["value"][1] = np.float32(number)
    return tensors


def ask_for_json(client: httpx.Client, door: str, tensors: Arrays) -> httpx.Response:
    """Ask at any door for an answer in JSON."""
    if door == "v2-binary":
        body, headers = write_v2_binary(tensors)
        return client.post(INFER, content=body, headers=headers)
    options = {"format": "json"} if door in ("v1-npz", "v1-safetensors") else {}
    return DOORS[door](client, tensors, **options)


@pytest.mark.parametrize(
    ("door", "number"),
    [
        (door, number)
        for door in DOORS
        for number in (np.nan, np.inf, 3.4e38)
        if door != "v1-json" or np.isfinite(number)  # JSON itself cannot ask for the others
    ],
)
def test_an_answer_that_json_cannot_say_is_400_and_never_500(
    client: httpx.Client, door: str, number: float
) -> None:
    """Also where finite inputs overflow.

    fastapi/fastapi #459; triton-inference-server/server #3711, #3870.
    """
    response = ask_for_json(client, door, fill_value(number))
    assert (response.status_code, response.json()) == (400, {"error": UNLIKE_JSON})


@pytest.mark.parametrize("number", [np.nan, np.inf, 3.4e38], ids=["nan", "infinity", "overflow"])
@pytest.mark.parametrize("door", ["v2-binary", "v1-npz", "v1-safetensors"])
def test_the_same_answer_in_bytes_keeps_every_other_item_right(
    client: httpx.Client, door: str, number: float
) -> None:
    got, right = ask(client, door, fill_value(number)), expect(draw_tokens(B, L, S))
    assert not np.isfinite(got["output"][1]).all()
    others = [0, 2, 3]
    check_close(
        {name: array[others] for name, array in got.items()},
        {name: array[others] for name, array in right.items()},
    )


def test_only_the_outputs_that_are_asked_for_must_be_finite(client: httpx.Client) -> None:
    tensors = fill_value(np.nan)
    body = write_v2_json({"query": tensors["query"], "key": tensors["key"]})
    binary, headers = write_v2_binary(tensors, outputs=[{"name": "attention_weights"}])
    response = client.post(INFER, content=binary, headers=headers)
    assert response.headers["Content-Type"] == JSON
    right = read_answer(client.post(INFER, json=body))["attention_weights"]
    np.testing.assert_array_equal(read_answer(response)["attention_weights"], right)
