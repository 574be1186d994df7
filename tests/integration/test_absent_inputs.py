"""Absent tensors: the query stands in for the key, the key for the value."""

import httpx
import pytest

from tests.integration.demo import (
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
from tests.integration.doors import DOORS, ask

TENSORS = draw_tokens()
QUERY, KEY, VALUE = (TENSORS[name] for name in ("query", "key", "value"))


@pytest.mark.parametrize("door", DOORS)
def test_a_query_alone_attends_to_itself(client: httpx.Client, door: str) -> None:
    got = ask(client, door, {"query": QUERY})
    check_close(got, expect({"query": QUERY, "key": QUERY, "value": QUERY}))


@pytest.mark.parametrize("door", DOORS)
def test_the_key_stands_in_for_an_absent_value(client: httpx.Client, door: str) -> None:
    got = ask(client, door, {"query": QUERY, "key": KEY})
    check_close(got, expect({"query": QUERY, "key": KEY, "value": KEY}))


@pytest.mark.parametrize("door", DOORS)
def test_the_query_stands_in_for_an_absent_key_beside_a_value(
    client: httpx.Client, door: str
) -> None:
    value = draw_tokens(B, S, L)["value"]
    got = ask(client, door, {"query": QUERY, "value": value})
    check_close(got, expect({"query": QUERY, "key": QUERY, "value": value}))


def test_masks_of_a_query_alone_are_square(client: httpx.Client) -> None:
    tensors = {"query": QUERY, "mask": draw_mask(B, H, L, L), "bias": draw_bias(L, L)}
    check_close(ask(client, "v2-json", tensors), expect(tensors))


def test_a_value_without_a_key_is_as_long_as_the_query(client: httpx.Client) -> None:
    response = DOORS["v2-json"](client, {"query": QUERY, "value": VALUE})
    assert (response.status_code, response.json()) == (
        400,
        {
            "error": f"input 'value' has {S} tokens, expected {L} as query (which stands in for "
            "the absent key)"
        },
    )


@pytest.mark.parametrize("door", DOORS)
def test_the_query_cannot_be_absent(client: httpx.Client, door: str) -> None:
    response = DOORS[door](client, {"key": KEY, "value": VALUE})
    assert (response.status_code, response.json()) == (400, {"error": "input 'query' is missing"})


def test_one_token_is_enough(client: httpx.Client) -> None:
    tensors = draw_tokens(1, 1, 1)
    got = ask(client, "v1-json", tensors)
    check_close(got, expect(tensors))
    assert got["output"].shape == (1, 1, D)
