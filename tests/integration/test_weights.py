"""The attention weights: not computed, of every head, or their mean."""

import httpx
import numpy as np
import pytest

from tests.integration.demo import B, H, L, S, check_close, draw_mask, draw_tokens, expect
from tests.integration.doors import DOORS, ask, read_answer

TENSORS = draw_tokens() | {"mask": draw_mask(B, H, L, S)}


@pytest.mark.parametrize("weights", ["none", "per_head", "mean"])
@pytest.mark.parametrize("door", DOORS)
def test_every_form_at_every_door(client: httpx.Client, door: str, weights: str) -> None:
    got = ask(client, door, TENSORS, weights=weights)
    check_close(got, expect(TENSORS, weights=weights))


def test_v2_answers_with_the_weights_unless_told_otherwise(client: httpx.Client) -> None:
    for door in ("v2-json", "v2-binary"):
        check_close(read_answer(DOORS[door](client, TENSORS)), expect(TENSORS))


def test_the_friendly_door_leaves_the_weights_out_unless_told_otherwise(
    client: httpx.Client,
) -> None:
    for door in ("v1-json", "v1-npz", "v1-safetensors"):
        got = read_answer(DOORS[door](client, TENSORS))
        check_close(got, expect(TENSORS, weights="none"))


def test_rows_of_weights_add_up_to_one(client: httpx.Client) -> None:
    for form in ("per_head", "mean"):
        weights = ask(client, "v2-binary", TENSORS, weights=form)["attention_weights"]
        np.testing.assert_allclose(weights.sum(axis=-1), 1, atol=1e-6)


def test_one_key_has_weight_exactly_1(client: httpx.Client) -> None:
    got = ask(client, "v2-json", draw_tokens(B, L, 1))
    assert (got["attention_weights"] == 1).all()


def test_permuted_keys_give_permuted_weights_and_the_same_output(client: httpx.Client) -> None:
    order = np.random.default_rng(9).permutation(S)
    permuted = TENSORS | {name: TENSORS[name][:, order] for name in ("key", "value")}
    permuted["mask"] = TENSORS["mask"][..., order]
    plain, got = (ask(client, "v2-binary", tensors) for tensors in (TENSORS, permuted))
    np.testing.assert_allclose(got["output"], plain["output"], atol=2e-6, rtol=0)
    expected = plain["attention_weights"][..., order]
    np.testing.assert_allclose(got["attention_weights"], expected, atol=2e-6, rtol=0)


def test_another_form_is_refused(client: httpx.Client) -> None:
    text = 'parameter \'weights\' is "sum", expected "none", "per_head", "mean" or "top_k"'
    for door in DOORS:
        response = DOORS[door](client, TENSORS, weights="sum")
        assert (response.status_code, response.json()) == (400, {"error": text})
