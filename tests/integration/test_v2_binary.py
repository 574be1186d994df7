"""V2 requests and answers whose tensors are bytes behind the JSON."""

import json
from typing import Any

import httpx
import numpy as np
import pytest

from tests.integration.demo import B, D, H, L, S, check_close, draw_bias, draw_mask, draw_tokens
from tests.integration.demo import expect as expect_outputs
from tests.integration.doors import (
    HEADER_LENGTH,
    INFER,
    JSON,
    read_answer,
    split_v2,
    write_v2_binary,
    write_v2_json,
)

TENSORS = draw_tokens() | {
    "mask": draw_mask(B, 1, L, S),
    "key_mask": draw_mask(B, S, seed=4) | (np.arange(S) < 2),
    "bias": draw_bias(1, H, L, S),
}
WANTED = expect_outputs(TENSORS)
BINARY_OUTPUTS = [
    {"name": name, "parameters": {"binary_data": True}} for name in ("output", "attention_weights")
]


def post(client: httpx.Client, body: bytes, headers: dict[str, str]) -> httpx.Response:
    """Post a V2 request of bytes."""
    return client.post(INFER, content=body, headers=headers)


def test_bytes_both_ways(client: httpx.Client) -> None:
    response = post(client, *write_v2_binary(TENSORS, outputs=BINARY_OUTPUTS))
    head, binary = split_v2(response)
    sizes = [output["parameters"] for output in head["outputs"]]
    assert sizes == [{"binary_data_size": 4 * B * L * D}, {"binary_data_size": 4 * B * H * L * S}]
    assert len(binary) == 4 * (B * L * D + B * H * L * S)
    check_close(read_answer(response), WANTED)


def test_bytes_in_and_json_out(client: httpx.Client) -> None:
    response = post(client, *write_v2_binary(TENSORS))
    assert response.headers["Content-Type"] == JSON
    assert HEADER_LENGTH not in response.headers
    check_close(read_answer(response), WANTED)


def test_json_in_and_bytes_out(client: httpx.Client) -> None:
    body = write_v2_json(TENSORS, outputs=BINARY_OUTPUTS)
    check_close(read_answer(client.post(INFER, content=json.dumps(body))), WANTED)


@pytest.mark.parametrize("as_json", [["query"], ["key", "mask"], ["bias", "key_mask"]], ids=str)
def test_inputs_may_be_mixed(client: httpx.Client, as_json: list[str]) -> None:
    response = post(client, *write_v2_binary(TENSORS, as_json=as_json))
    check_close(read_answer(response), WANTED)


@pytest.mark.parametrize("binary", ["output", "attention_weights"])
def test_outputs_may_be_mixed(client: httpx.Client, binary: str) -> None:
    outputs: list[dict[str, Any]] = [
        {"name": name, "parameters": {"binary_data": name == binary}} for name in WANTED
    ]
    response = post(client, *write_v2_binary(TENSORS, outputs=outputs))
    head, _ = split_v2(response)
    assert [("data" in o, "parameters" in o) for o in head["outputs"]] == [
        (name != binary, name == binary) for name in WANTED
    ]
    check_close(read_answer(response), WANTED)


def test_the_bytes_follow_in_the_order_of_the_inputs(client: httpx.Client) -> None:
    alphabetical = {name: TENSORS[name] for name in sorted(TENSORS)}
    check_close(read_answer(post(client, *write_v2_binary(alphabetical))), WANTED)


def test_the_length_header_counts_bytes_not_characters(client: httpx.Client) -> None:
    response = post(client, *write_v2_binary(TENSORS, id="ü€🙂", outputs=BINARY_OUTPUTS))
    head, _ = split_v2(response)
    assert head["id"] == "ü€🙂"
    check_close(read_answer(response), WANTED)


def test_the_length_header_may_cover_a_body_that_is_all_json(client: httpx.Client) -> None:
    text = json.dumps(write_v2_json(TENSORS)).encode()
    response = post(client, text, {HEADER_LENGTH: str(len(text))})
    check_close(read_answer(response), WANTED)


@pytest.mark.parametrize("pad", range(4))
def test_the_bytes_may_start_at_any_offset(client: httpx.Client, pad: int) -> None:
    response = post(client, *write_v2_binary(TENSORS, id="x" * pad))
    check_close(read_answer(response), WANTED)


def test_a_chunked_body_is_read(client: httpx.Client) -> None:
    body, headers = write_v2_binary(TENSORS, outputs=BINARY_OUTPUTS)
    response = client.post(
        INFER, content=iter([body[:50], body[50:777], body[777:]]), headers=headers
    )
    check_close(read_answer(response), WANTED)


def test_any_byte_but_0_is_true_in_a_binary_mask(client: httpx.Client) -> None:
    body, headers = write_v2_binary(TENSORS)
    odd_bytes = np.array([1, 2, 128, 255], np.uint8)
    lively = np.where(TENSORS["mask"], np.resize(odd_bytes, TENSORS["mask"].shape), 0)
    sent = body.replace(TENSORS["mask"].tobytes(), lively.astype(np.uint8).tobytes())
    assert sent != body
    check_close(read_answer(post(client, sent, headers)), WANTED)


def test_random_bytes_for_every_input_are_answered(client: httpx.Client) -> None:
    """Load tools send them, and ask for every output: NaN, infinities and denormals are in it."""
    body, headers = write_v2_binary(TENSORS, outputs=BINARY_OUTPUTS)
    start = int(headers[HEADER_LENGTH])
    for seed in range(20):
        noise = np.random.default_rng(seed).bytes(len(body) - start)
        response = post(client, body[:start] + noise, headers)
        assert {name: array.shape for name, array in read_answer(response).items()} == {
            "output": (B, L, D),
            "attention_weights": (B, H, L, S),
        }
