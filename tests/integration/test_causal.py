"""Causal attention, alone and beside everything else that hides."""

from typing import Any

import httpx
import numpy as np
import pytest

from tests.integration.demo import (
    Arrays,
    B,
    H,
    L,
    S,
    check_close,
    draw_bias,
    draw_mask,
    draw_tokens,
    expect,
)
from tests.integration.doors import DOORS, INFER, ask, write_v2_json

LENGTHS = [(L, S), (S, L), (L, L), (1, S), (L, 1), (1, 1)]
KINDS = [True, "top_left", "bottom_right", False]


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("lengths", LENGTHS, ids=str)
@pytest.mark.parametrize("door", ["v2-json", "v2-binary", "v1-json", "v1-npz"])
def test_both_alignments_at_all_lengths(
    client: httpx.Client, door: str, lengths: tuple[int, int], kind: Any
) -> None:
    tensors = draw_tokens(B, *lengths)
    got = ask(client, door, tensors, causal=kind)
    check_close(got, expect(tensors, causal=kind))


def test_the_alignments_are_those_that_their_names_say(client: httpx.Client) -> None:
    tensors = draw_tokens(B, 2, 5)
    seen = {
        kind: (ask(client, "v2-json", tensors, causal=kind)["attention_weights"][0, 0] > 0).tolist()
        for kind in ("top_left", "bottom_right")
    }
    assert seen["top_left"] == [[True, False, False, False, False], [True, True] + [False] * 3]
    assert seen["bottom_right"] == [[True, True, True, True, False], [True] * 5]


def test_rows_above_a_bottom_right_triangle_see_nothing_and_are_uniform(
    client: httpx.Client,
) -> None:
    tensors = draw_tokens(B, S, L)
    got = ask(client, "v2-binary", tensors, causal="bottom_right")["attention_weights"]
    np.testing.assert_allclose(got[:, :, : S - L], 1 / L, atol=1e-7)


MASKS: dict[str, Arrays] = {
    "mask": {"mask": draw_mask(B, H, L, S)},
    "key_mask": {"key_mask": np.arange(S) < np.array([7, 1, 4, 6])[:, None]},
    "bias": {"bias": draw_bias(1, H, L, S)},
    "infinite-bias": {"bias": np.where(draw_mask(L, S, seed=5), np.float32(0.5), -np.inf)},
}
MASKS["mask-and-key_mask"] = MASKS["mask"] | MASKS["key_mask"]
MASKS["everything"] = MASKS["mask"] | MASKS["key_mask"] | MASKS["bias"]
MASKS["everything-infinite"] = MASKS["mask"] | MASKS["key_mask"] | MASKS["infinite-bias"]


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("case", MASKS)
@pytest.mark.parametrize("door", DOORS)
def test_a_key_is_seen_where_everything_given_lets_it_be(
    client: httpx.Client, door: str, case: str, kind: Any
) -> None:
    tensors = draw_tokens() | MASKS[case]
    right = expect(tensors, causal=kind)
    if door == "v1-json" and "bias" in tensors:
        # JSON itself has no spelling for an infinity: -1e30 stands for it.
        tensors["bias"] = np.maximum(tensors["bias"], np.float32(-1e30))
    check_close(ask(client, door, tensors, causal=kind), right)


@pytest.mark.parametrize(
    ("value", "shown"), [(1, "1"), ("yes", '"yes"'), ("TRUE", '"TRUE"'), (0.5, "0.5")]
)
def test_another_alignment_is_refused(client: httpx.Client, value: Any, shown: str) -> None:
    body = write_v2_json(draw_tokens(), parameters={"causal": value})
    response = client.post(INFER, json=body)
    assert (response.status_code, response.json()) == (
        400,
        {
            "error": f"parameter 'causal' is {shown}, expected true, false, "
            '"top_left" (as true) or "bottom_right"'
        },
    )
