"""Faults of JSON: values that a library converts silently, and nesting that is no shape."""

import inspect
import json
import math
from typing import Any

import httpx
import numpy as np
import pytest
from fastapi import Response
from hypothesis import given, settings
from hypothesis import strategies as st

from service.routes import attention, infer
from tests.integration.demo import D, H, L, check_close, draw_tokens, expect
from tests.integration.doors import (
    ATTENTION,
    INFER,
    JSON,
    ask,
    read_answer,
    write_nested,
    write_v2_json,
)

QUERY = draw_tokens(1, 2, 2)["query"]
NAMES = {bool: "a boolean", str: "a string", type(None): "null", dict: "an object"}
ODD: st.SearchStrategy[Any] = st.none() | st.booleans() | st.text(max_size=4) | st.just({})
SHAPES = [(4, 3, 2), (24,), (2, 12), (12, 2), (1, 1, 24), (2, 2, 2, 3), (24, 1)]


def refuse(response: httpx.Response) -> str:
    """The text of a refusal."""
    assert response.status_code == 400, response.text
    return str(response.json()["error"])


def post_mask(client: httpx.Client, door: str, data: list[Any]) -> httpx.Response:
    """A query of two tokens whose mask, for each of them, is `data`."""
    if door == "v1-json":
        return client.post(ATTENTION, json=write_nested({"query": QUERY}) | {"mask": [data]})
    mask = {"name": "mask", "shape": [1, len(data)], "datatype": "BOOL", "data": data}
    body = write_v2_json({"query": QUERY})
    return client.post(INFER, json=body | {"inputs": [*body["inputs"], mask]})


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (2, "2"),
        (-1, "-1"),
        (None, "null"),
        ("false", "a string"),
        ("1", "a string"),
        ("", "a string"),
        ({}, "an object"),
        (0.5, "0.5"),
        (10**30, "1e+30"),
    ],
    ids=str,
)
@pytest.mark.parametrize("door", ["v2-json", "v1-json"])
def test_what_is_no_boolean_is_refused_at_its_place_and_never_true(
    client: httpx.Client, door: str, value: Any, shown: str
) -> None:
    """numpy makes all of these true (triton-inference-server/server #8821)."""
    text = refuse(post_mask(client, door, [True, value]))
    assert text.startswith(("input 'mask' holds ", "input 'mask' has "))
    assert shown in text
    assert "expected true, false, " in text or "expected 0 or 1" in text


@given(door=st.sampled_from(["v2-json", "v1-json"]), data=st.lists(
    st.sampled_from([True, False, 0, 1]), min_size=2, max_size=2))  # fmt: skip
def test_true_false_1_and_0_are_the_four_booleans(
    client: httpx.Client, door: str, data: list[Any]
) -> None:
    """triton-inference-server/server #8821."""
    options = {"causal": False}
    right = expect({"query": QUERY, "mask": np.array([data]) != 0}, **options)
    got = read_answer(post_mask(client, door, data))
    check_close(got, {name: right[name] for name in got})


@given(element=st.integers(0, 2 * D - 1), value=ODD)
@settings(max_examples=60)
def test_what_is_no_number_is_refused_at_its_place_by_both_doors(
    client: httpx.Client, element: int, value: Any
) -> None:
    """ "1.5", true and null are numbers to a lax parser.

    fastapi/fastapi #2072; triton-inference-server/server #8821.
    """
    flat = QUERY.ravel().tolist()
    flat[element] = value
    entry = {"name": "query", "shape": [1, 2, D], "datatype": "FP32", "data": flat}
    text = (
        f"input 'query' holds {NAMES[type(value)]} at element {element}, expected numbers for FP32"
    )
    assert refuse(client.post(INFER, json={"inputs": [entry]})) == text
    nested = {"query": [[flat[:D], flat[D:]]]}
    assert refuse(client.post(ATTENTION, json=nested)) == text


@given(
    axis=st.integers(0, 2),
    entry=st.none() | st.booleans() | st.text(max_size=3) | st.floats(allow_nan=False) | st.just([])
    | st.integers(max_value=-1) | st.integers(min_value=2**31, max_value=2**70),
)  # fmt: skip
@settings(max_examples=60)
def test_what_is_no_size_is_refused_in_a_shape(client: httpx.Client, axis: int, entry: Any) -> None:
    """ "2", 1.0 and true are sizes to a lax parser (fastapi/fastapi #2072)."""
    body = write_v2_json({"query": QUERY})
    body["inputs"][0]["shape"][axis] = entry
    text = refuse(client.post(INFER, content=json.dumps(body, allow_nan=True)))
    assert text.startswith(("input 'query' has ", "the request is not JSON: "))
    assert "in its shape, expected whole numbers from 0 to 2147483647" in text or "JSON" in text


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_data_of_any_nesting_is_read_row_by_row(
    client: httpx.Client, shape: tuple[int, ...]
) -> None:
    """The shape counts, the nesting does not (triton-inference-server/server #4405)."""
    query = draw_tokens(2, 2, 2)["query"]
    body = write_v2_json({"query": query})
    body["inputs"][0]["data"] = query.reshape(shape).tolist()
    check_close(read_answer(client.post(INFER, json=body)), expect({"query": query}))


@given(count=st.integers(0, 40).filter(lambda count: count != 24), nested=st.booleans())
@settings(max_examples=40)
def test_another_number_of_elements_is_refused(
    client: httpx.Client, count: int, nested: bool
) -> None:
    """triton-inference-server/server #4405."""
    body = write_v2_json({"query": draw_tokens(2, 2, 2)["query"]})
    body["inputs"][0]["data"] = [[0.5] * count] if nested else [0.5] * count
    assert refuse(client.post(INFER, json=body)) == (
        f"input 'query' has {count} elements, expected 24 for shape [2, 2, 6]"
    )


RAGGED = [
    [[1, 2], [3]],
    [[1, 2], 3],
    [1, [2, 3]],
    [[[1], [2]], [[3]]],
    [[1, 2], []],
    [[], [1]],
    [[[1, 2]], [[1], [2]]],
]


@pytest.mark.parametrize("data", RAGGED, ids=str)
def test_ragged_lists_are_refused_by_both_doors(client: httpx.Client, data: list[Any]) -> None:
    """numpy makes objects of them, or refuses with a text of its own."""
    for response in (
        client.post(ATTENTION, json={"query": data}),
        client.post(
            INFER,
            json={
                "inputs": [{"name": "query", "shape": [1, 1, 3], "datatype": "FP32", "data": data}]
            },
        ),
    ):
        text = refuse(response)
        assert text.startswith("input 'query' h")
        assert "expected" in text


def test_json_answers_are_flat_beside_their_shape(client: httpx.Client) -> None:
    """Clients reshape (triton-inference-server/server #1547)."""
    answer = client.post(INFER, json=write_v2_json(draw_tokens(2))).json()
    shapes = {output["name"]: output["shape"] for output in answer["outputs"]}
    assert shapes == {"output": [2, L, D], "attention_weights": [2, H, L, 7]}
    for output in answer["outputs"]:
        assert len(output["data"]) == math.prod(output["shape"])
        assert {type(number) for number in output["data"]} == {float}


@pytest.mark.parametrize("endpoint", [infer.infer, infer.infer_version, attention.attend])
def test_answers_are_written_once_and_not_validated_again(endpoint: Any) -> None:
    """A returned dictionary costs a pass over every number (fastapi/fastapi #2615, #360)."""
    assert inspect.signature(endpoint).return_annotation is Response


def test_a_large_answer_has_every_number(client: httpx.Client) -> None:
    """fastapi/fastapi #2615."""
    tensors = draw_tokens(3, 110, 130)
    assert 3 * H * 110 * 130 * 10 > 2**20, "the answer has less than a mebibyte"
    for door in ("v2-json", "v1-json"):
        check_close(ask(client, door, tensors), expect(tensors))


def test_the_content_type_of_json_has_no_parameters(client: httpx.Client) -> None:
    for path, body in ((INFER, write_v2_json({"query": QUERY})), (ATTENTION, {"query": [[1] * D]})):
        assert client.post(path, json=body).headers["Content-Type"] == JSON


@pytest.mark.parametrize("depth", [10**2, 10**3, 10**4, 10**5, 10**6])
@pytest.mark.parametrize("opening", [b"[", b'{"a":', b'{"query":[', b'{"inputs":[{"data":['])
@pytest.mark.parametrize("path", [ATTENTION, INFER])
def test_nesting_of_any_depth_is_refused_and_the_server_lives(
    client: httpx.Client, path: str, opening: bytes, depth: int
) -> None:
    """CVE-2025-23325, CVE-2025-67221."""
    assert refuse(client.post(path, content=opening * depth, headers={"Content-Type": JSON}))
    assert client.get("/v2/health/ready").status_code == 200
