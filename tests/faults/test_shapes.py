"""Faults of shapes: sizes that were frozen, widths that do not fit, axes that are missing."""

import httpx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.integration.demo import B, D, L, S, check_close, draw_tokens, expect
from tests.integration.doors import DOORS, V1_DOORS, ask

FROZEN = [(1, 1, 1), (3, 7, 5), (5, 16, 16), (2, 1, 9)]
NAMES = {"query": "query_length", "key": "key_length", "value": "key_length"}


@pytest.mark.parametrize("weights", ["none", "per_head"])
@pytest.mark.parametrize("sizes", FROZEN, ids=str)
@pytest.mark.parametrize("door", DOORS)
def test_no_size_is_frozen_at_that_of_an_example(
    client: httpx.Client, door: str, sizes: tuple[int, int, int], weights: str
) -> None:
    """pytorch/pytorch #122321, #120075, #99701, #99516, #148886, #152018, #170264."""
    tensors = draw_tokens(*sizes)
    check_close(ask(client, door, tensors, weights=weights), expect(tensors, weights=weights))


@given(
    door=st.sampled_from(sorted(DOORS)),
    batch_size=st.integers(1, 9),
    query_length=st.integers(1, 70),
    key_length=st.integers(1, 70),
)
@settings(max_examples=80)
def test_every_size_is_answered(
    client: httpx.Client, door: str, batch_size: int, query_length: int, key_length: int
) -> None:
    """pytorch/pytorch #99701, #170264; livekit/livekit-wakeword #39."""
    tensors = draw_tokens(batch_size, query_length, key_length)
    check_close(ask(client, door, tensors), expect(tensors))


def refuse(client: httpx.Client, door: str, **changed: np.ndarray) -> str:
    """The text of the refusal of a request with other tensors."""
    response = DOORS[door](client, draw_tokens() | changed)
    assert response.status_code == 400, response.text
    return str(response.json()["error"])


@given(
    door=st.sampled_from(sorted(DOORS)),
    name=st.sampled_from(sorted(NAMES)),
    width=st.integers(1, 3 * D).filter(lambda width: width != D),
)
@settings(max_examples=120)
def test_a_tensor_of_another_width_is_refused_by_name_with_both_shapes(
    client: httpx.Client, door: str, name: str, width: int
) -> None:
    """Half the width too (triton-inference-server/server #104, #1545)."""
    length = L if name == "query" else S
    text = refuse(client, door, **{name: np.ones((B, length, width), np.float32)})
    assert text == (
        f"input '{name}' has shape [{B}, {length}, {width}], expected "
        f"[batch_size, {NAMES[name]}, {D}]"
    )


@pytest.mark.parametrize("shape", [(D,), (1, B, L, D), (1, 1, B, L, D)], ids=str)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("door", DOORS)
def test_a_tensor_of_another_rank_is_refused_by_name(
    client: httpx.Client, door: str, name: str, shape: tuple[int, ...]
) -> None:
    """triton-inference-server/server #104."""
    text = refuse(client, door, **{name: np.ones(shape, np.float32)})
    assert text == (
        f"input '{name}' has shape {list(shape)}, expected [batch_size, {NAMES[name]}, {D}]"
    )


@pytest.mark.parametrize("door", V1_DOORS)
def test_a_query_without_a_batch_axis_comes_back_without_one(
    client: httpx.Client, door: str
) -> None:
    """triton-inference-server/server #104; nn.MultiheadAttention's unbatched input."""
    query = draw_tokens()["query"]
    got = ask(client, door, {"query": query[0]})
    right = expect({"query": query[:1]})
    check_close(got, {name: array[0] for name, array in right.items()})


@pytest.mark.parametrize("door", ["v2-json", "v2-binary"])
def test_the_protocol_of_version_2_has_no_tensors_without_a_batch_axis(
    client: httpx.Client, door: str
) -> None:
    response = DOORS[door](client, {"query": draw_tokens()["query"][0]})
    text = f"input 'query' has shape [{L}, {D}], expected [batch_size, query_length, {D}]"
    assert (response.status_code, response.json()) == (400, {"error": text})
