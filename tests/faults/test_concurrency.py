"""Faults of servers that answer many at once: mixed answers, merged parameters, starvation."""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

import httpx
import numpy as np
import pytest

from tests.integration.demo import (
    Arrays,
    H,
    check_close,
    check_same,
    draw_bias,
    draw_mask,
    draw_tokens,
    expect,
)
from tests.integration.doors import DOORS, INFER, ask, read_answer, write_v2_binary
from tests.integration.server_process import start_server

MANY: Final = 1000
CLIENTS: Final = 64
TIMEOUT_S: Final = 60
CAUSAL: Final = [False, True, "top_left", "bottom_right"]
WEIGHTS: Final = ["none", "per_head", "mean"]


@dataclass(frozen=True)
class Request:
    """One of many requests: a door, tensors and options, no two alike."""

    door: str
    tensors: Arrays
    options: dict[str, Any]


def make_request(number: int) -> Request:
    """A request whose sizes, masks, options and door follow from its number."""
    batch_size, query_length, key_length = 1 + number % 4, 1 + number % 7, 1 + number % 11
    shapes = {
        "mask": [(batch_size, 1, query_length, key_length), (query_length, key_length)],
        "bias": [(1, H, query_length, key_length), (batch_size, 1, key_length)],
    }
    tensors = draw_tokens(batch_size, query_length, key_length, seed=number)
    if number % 3:
        tensors["mask"] = draw_mask(*shapes["mask"][number % 2], seed=number)
    if number % 5 == 0:
        tensors["bias"] = draw_bias(*shapes["bias"][number % 2], seed=number)
    if number % 4 == 0:
        tensors["key_mask"] = draw_mask(batch_size, key_length, seed=number + 1)
    options = {"causal": CAUSAL[number % 4], "weights": WEIGHTS[number % 3]}
    return Request(sorted(DOORS)[number % len(DOORS)], tensors, options)


def answer(client: httpx.Client, request: Request) -> Arrays:
    """The tensors of the answer."""
    return ask(client, request.door, request.tensors, **request.options)


def test_many_requests_at_once_have_the_bits_of_each_alone(
    client: httpx.Client, provider: str
) -> None:
    """Sizes, masks, parameters, outputs and doors all mixed: each gets its own.

    SeldonIO/MLServer #1541, #916, #925, #312; microsoft/onnxruntime #14998, #15022, #13571.
    """
    requests = [make_request(number) for number in range(MANY)]
    alone = [answer(client, request) for request in requests]
    with ThreadPoolExecutor(CLIENTS) as pool:
        together = list(pool.map(lambda request: answer(client, request), requests))
    for request, got, right in zip(requests, together, alone, strict=True):
        if provider == "cpu":
            check_same(got, right)
        check_close(got, expect(request.tensors, **request.options))


def test_each_of_many_v2_requests_gets_its_own_id_outputs_and_forms(client: httpx.Client) -> None:
    """SeldonIO/MLServer #1541, #916."""
    forms: list[list[dict[str, Any]]] = [
        [{"name": "output"}],
        [{"name": "attention_weights", "parameters": {"binary_data": True}}],
        [{"name": "attention_weights"}, {"name": "output", "parameters": {"binary_data": True}}],
    ]

    def post(number: int) -> httpx.Response:
        tensors = draw_tokens(1, 2, 3, seed=number)
        body, headers = write_v2_binary(tensors, id=f"number {number}", outputs=forms[number % 3])
        return client.post(INFER, content=body, headers=headers)

    with ThreadPoolExecutor(CLIENTS) as pool:
        responses = list(pool.map(post, range(MANY // 10)))
    for number, response in enumerate(responses):
        assert f'"id":"number {number}"'.encode() in response.content
        right, got = expect(draw_tokens(1, 2, 3, seed=number)), read_answer(response)
        assert list(got) == [output["name"] for output in forms[number % 3]]
        check_close(got, {name: right[name] for name in got})


@pytest.fixture(name="narrow")
def start_narrow() -> Iterator[httpx.Client]:
    """A server of one thread and one place to wait."""
    if "LIMELIGHT_TEST_URL" in os.environ:
        pytest.skip("a deployed server is tested")
    with (
        start_server(LIMELIGHT_INFERENCE_THREADS="1", LIMELIGHT_MAX_QUEUE_REQUESTS="1") as server,
        httpx.Client(base_url=server.url, timeout=TIMEOUT_S) as client,
    ):
        yield client


def test_a_full_queue_refuses_at_once_and_answers_the_others_right(narrow: httpx.Client) -> None:
    """Nobody waits for ever (bentoml/BentoML #4592)."""
    tensors = draw_tokens(1, 1500, 1500)
    body, headers = write_v2_binary(
        tensors, parameters={"binary_data_output": True, "weights": "none"}
    )
    right = expect(tensors, weights="none")
    text = "1 requests are waiting already, expected fewer than 1 (LIMELIGHT_MAX_QUEUE_REQUESTS); "
    refused = 0
    with ThreadPoolExecutor(CLIENTS) as pool:
        for attempt in count():
            assert attempt < 20, "the queue was never full"
            responses = list(
                pool.map(
                    lambda _: narrow.post(INFER, content=body, headers=headers), range(CLIENTS)
                )
            )
            for response in responses:
                if response.status_code == 503:
                    refused += 1
                    assert response.json() == {"error": f"{text}try again later"}
                    assert response.headers["Retry-After"] == "1"
                else:
                    check_close(read_answer(response), right)
            assert any(response.status_code == 200 for response in responses)
            if refused:
                break
    check_close(ask(narrow, "v1-npz", draw_tokens()), expect(draw_tokens()))


def leave(client: httpx.Client, tensors: Arrays) -> None:
    """Ask, and hang up before there can be an answer."""
    body, headers = write_v2_binary(tensors)
    with pytest.raises(httpx.ReadTimeout):
        client.post(INFER, content=body, headers=headers, timeout=httpx.Timeout(30, read=1e-4))


def test_a_neighbour_that_leaves_fails_or_is_huge_changes_no_answer(
    client: httpx.Client, provider: str
) -> None:
    """SeldonIO/MLServer #312, #925."""
    tensors = draw_tokens()
    right = ask(client, "v2-binary", tensors)
    wide = draw_tokens(2, 700, 900)
    nan = tensors | {"value": np.full_like(tensors["value"], np.nan)}

    def disturb(number: int) -> None:
        if number % 3 == 0:
            DOORS["v1-json"](client, {"query": np.ones((1, 2, 5), np.float32)})
        elif number % 3 == 1:
            DOORS["v1-npz"](client, nan)
        else:
            leave(client, wide)

    with ThreadPoolExecutor(CLIENTS) as pool:
        disturbances = [pool.submit(disturb, number) for number in range(24)]
        answers = list(pool.map(lambda _: ask(client, "v2-binary", tensors), range(48)))
        for disturbance in disturbances:
            disturbance.result()
    for got in answers:
        if provider == "cpu":
            check_same(got, right)
        check_close(got, expect(tensors))
