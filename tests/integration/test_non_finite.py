"""NaN and infinities: read as tokens, kept to their row, and written as bytes only."""

import json

import httpx
import numpy as np
import pytest

from tests.integration.demo import TOLERANCE, B, H, L, check_same, draw_bias, draw_tokens, expect
from tests.integration.demo import S as KEYS
from tests.integration.doors import (
    ATTENTION,
    DOORS,
    INFER,
    NPZ,
    ask,
    read_answer,
    write_nested,
    write_v2_json,
)

TENSORS = draw_tokens()
BAD_ITEM, BAD_ROW = 2, 3
REFUSAL = "holds NaN or an infinity, which JSON cannot say; ask for binary"


def with_nan(**changes: float) -> dict[str, np.ndarray]:
    """The tensors with one number replaced in those that are named."""
    tensors = {name: array.copy() for name, array in TENSORS.items()}
    for name, number in changes.items():
        tensors[name][BAD_ITEM, BAD_ROW, 1] = number
    return tensors


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf], ids=str)
def test_v2_json_takes_the_tokens_of_non_finite_numbers(
    client: httpx.Client, number: float
) -> None:
    body = write_v2_json(with_nan(query=number), parameters={"binary_data_output": True})
    text = json.dumps(body)
    assert "NaN" in text or "Infinity" in text
    got = read_answer(client.post(INFER, content=text))
    assert np.isnan(got["output"][BAD_ITEM, BAD_ROW]).all()


@pytest.mark.parametrize("name", ["query", "key", "value"])
def test_nan_in_one_item_never_reaches_another(client: httpx.Client, name: str) -> None:
    got = ask(client, "v2-binary", with_nan(**{name: np.nan}))
    others = [item for item in range(B) if item != BAD_ITEM]
    right = expect(TENSORS)
    for output, array in got.items():
        assert np.isfinite(array[others]).all()
        assert np.abs(array[others] - right[output][others]).max() < TOLERANCE
    assert np.isnan(got["output"][BAD_ITEM]).any()


def test_nan_in_one_query_reaches_no_other_row(client: httpx.Client) -> None:
    got = ask(client, "v2-binary", with_nan(query=np.nan))
    rows = [row for row in range(L) if row != BAD_ROW]
    right = expect(TENSORS)["output"][BAD_ITEM, rows]
    np.testing.assert_allclose(got["output"][BAD_ITEM, rows], right, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("number", [np.nan, np.inf], ids=str)
def test_a_bias_that_is_not_finite_spoils_its_row_alone(
    client: httpx.Client, number: float
) -> None:
    bias = draw_bias(B, H, L, KEYS)
    finite = expect(TENSORS | {"bias": bias})
    bias[BAD_ITEM, 1, BAD_ROW, 4] = number
    got = ask(client, "v2-binary", TENSORS | {"bias": bias})
    spoilt = np.zeros((B, H, L), bool)
    spoilt[BAD_ITEM, 1, BAD_ROW] = True
    assert np.isnan(got["attention_weights"][spoilt]).all()
    right = finite["attention_weights"][~spoilt]
    np.testing.assert_allclose(got["attention_weights"][~spoilt], right, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("door", ["v2-json", "v1-npz"])
def test_an_answer_that_json_cannot_say_is_refused_with_the_way_out(
    client: httpx.Client, door: str
) -> None:
    if door == "v2-json":
        response = client.post(INFER, content=json.dumps(write_v2_json(with_nan(value=np.nan))))
    else:
        response = DOORS[door](client, with_nan(value=np.nan), format="json")
    assert response.status_code == 400
    assert REFUSAL in response.json()["error"]


@pytest.mark.parametrize("door", ["v2-binary", "v1-npz", "v1-safetensors"])
def test_binary_answers_carry_it(client: httpx.Client, door: str) -> None:
    got = ask(client, door, with_nan(value=np.nan))
    assert np.isnan(got["output"][BAD_ITEM]).any()
    assert np.isfinite(got["attention_weights"]).all()


def test_the_friendly_door_answers_tokens_or_says_what_to_send(client: httpx.Client) -> None:
    """JSON itself has no such tokens: where they are refused, the text must help."""
    text = json.dumps(write_nested(TENSORS | {"bias": np.full((L, KEYS), -np.inf)}))
    response = client.post(ATTENTION, content=text, headers={"Content-Type": "application/json"})
    assert response.status_code == 400
    assert "-1e30" in response.json()["error"]


@pytest.mark.parametrize("wild", [np.nan, np.inf, -np.inf, np.finfo(np.float32).max])
@pytest.mark.parametrize("weights", ["none", "per_head"])
def test_what_nobody_sees_may_be_nan(client: httpx.Client, wild: float, weights: str) -> None:
    """A hidden key has weight 0, and 0 times NaN is NaN: so it is cleared before it counts."""
    tensors = {name: array.copy() for name, array in TENSORS.items()}
    for name in ("key", "value"):
        tensors[name][:, -2:] = wild
    key_mask = np.arange(KEYS) < KEYS - 2
    tensors["key_mask"] = np.broadcast_to(key_mask, (B, KEYS))
    got = ask(client, "v1-npz", tensors, weights=weights)
    calm = TENSORS | {"key_mask": tensors["key_mask"]}
    check_same(got, ask(client, "v1-npz", calm, weights=weights))


def test_npz_is_the_media_type_of_an_npz_answer(client: httpx.Client) -> None:
    response = DOORS["v1-json"](client, TENSORS)
    assert response.status_code == 200
    response = client.post(
        f"{ATTENTION}?format=npz", content=json.dumps(write_nested(TENSORS)).encode()
    )
    assert response.headers["Content-Type"] == NPZ
