"""Tensors that do not fit: status and text of every refusal, word for word."""

from typing import Any

import httpx
import numpy as np
import pytest

from tests.integration.demo import B, D, L, S, check_close, draw_tokens, expect
from tests.integration.doors import DOORS, INFER, ask, write_v2_json

TENSORS = draw_tokens()
LARGEST = 2**31 - 1


SHAPES = [
    pytest.param(
        "query",
        (B, L, D + 1),
        f"has shape [{B}, {L}, {D + 1}], expected [batch_size, query_length, {D}]",
        id="width-of-query",
    ),
    pytest.param(
        "key",
        (B, S, D - 1),
        f"has shape [{B}, {S}, {D - 1}], expected [batch_size, key_length, {D}]",
        id="width-of-key",
    ),
    pytest.param(
        "value",
        (B, S, 2 * D),
        f"has shape [{B}, {S}, {2 * D}], expected [batch_size, key_length, {D}]",
        id="width-of-value",
    ),
    pytest.param(
        "query",
        (B, 1, L, D),
        f"has shape [{B}, 1, {L}, {D}], expected [batch_size, query_length, {D}]",
        id="rank-of-query",
    ),
    pytest.param(
        "key",
        (S, D),
        f"has shape [{S}, {D}], expected [batch_size, key_length, {D}]",
        id="rank-of-key",
    ),
    pytest.param(
        "key",
        (B + 1, S, D),
        f"has batch size {B + 1}, expected {B} as query; tensors are [batch_size, length, width]",
        id="batch-of-key",
    ),
    pytest.param(
        "value",
        (1, S, D),
        f"has batch size 1, expected {B} as query; tensors are [batch_size, length, width]",
        id="batch-of-value",
    ),
    pytest.param(
        "value", (B, S + 1, D), f"has {S + 1} tokens, expected {S} as key", id="length-of-value"
    ),
    pytest.param(
        "query",
        (0, L, D),
        f"has shape [0, {L}, {D}], expected no axis of size 0",
        id="empty-batch",
    ),
    pytest.param(
        "query",
        (B, 0, D),
        f"has shape [{B}, 0, {D}], expected no axis of size 0",
        id="empty-query",
    ),
    pytest.param(
        "key", (B, 0, D), f"has shape [{B}, 0, {D}], expected no axis of size 0", id="empty-key"
    ),
]


@pytest.mark.parametrize(("name", "shape", "text"), SHAPES)
def test_a_shape_that_does_not_fit(
    client: httpx.Client, name: str, shape: tuple[int, ...], text: str
) -> None:
    sent = TENSORS | {name: np.ones(shape, np.float32)}
    for door in ("v2-binary", "v2-json", "v1-npz", "v1-safetensors"):
        response = DOORS[door](client, sent)
        assert (response.status_code, response.json()) == (400, {"error": f"input '{name}' {text}"})


def test_a_query_of_rank_2_is_a_fault_in_v2_only(client: httpx.Client) -> None:
    """The friendly door takes it as a tensor without a batch axis."""
    sent = {"query": TENSORS["query"][0]}
    response = DOORS["v2-binary"](client, sent)
    text = f"input 'query' has shape [{L}, {D}], expected [batch_size, query_length, {D}]"
    assert (response.status_code, response.json()) == (400, {"error": text})
    assert ask(client, "v1-npz", sent)["output"].shape == (L, D)


@pytest.mark.parametrize(
    ("entry", "shown"),
    [
        (-1, "-1"),
        (True, "true"),
        (2.0, "2.0"),
        ("2", '"2"'),
        (None, "null"),
        ([2], "a list"),
        (2**31, str(2**31)),
        (2**62, str(2**62)),
    ],
    ids=str,
)
def test_an_entry_of_a_shape_that_is_no_size(client: httpx.Client, entry: Any, shown: str) -> None:
    body = write_v2_json(TENSORS)
    body["inputs"][1]["shape"] = [entry, S, D]
    response = client.post(INFER, json=body)
    text = f"input 'key' has {shown} in its shape, expected whole numbers from 0 to {LARGEST}"
    assert (response.status_code, response.json()) == (400, {"error": text})


def test_a_good_request_follows_all_of_these(client: httpx.Client) -> None:
    check_close(ask(client, "v2-json", TENSORS), expect(TENSORS))
