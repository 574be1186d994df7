"""Shared memory, which is not offered: as load tools meet it."""

import httpx
import numpy as np
import pytest

from tests.integration.demo import D
from tests.integration.doors import INFER, JSON, write_v2_json

KINDS = ("system", "cuda")
FORM = "application/x-www-form-urlencoded"  # what libcurl says of every body
QUERY = {"query": np.ones((1, 2, D), np.float32)}
REGION = {"shared_memory_region": "mine", "shared_memory_byte_size": 48}


@pytest.mark.parametrize("kind", KINDS)
def test_a_load_tool_that_clears_up_and_registers_is_told_at_the_second_step(
    client: httpx.Client, kind: str
) -> None:
    """perf_analyzer: unregister all of both kinds, register, unregister all again."""
    region = {"key": "/mine", "offset": 0, "byte_size": 48}
    for _ in range(2):
        for each in KINDS:
            path = f"/v2/{each}sharedmemory/unregister"
            response = client.post(path, headers={"Content-Type": FORM})
            assert (response.status_code, response.json()) == (200, {})
        path = f"/v2/{kind}sharedmemory/region/mine/register"
        response = client.post(path, json=region, headers={"Content-Type": FORM})
        assert response.status_code == 501
        assert response.headers["Content-Type"] == JSON
        assert response.json()["error"].startswith("shared memory is not offered, so region 'mine'")


@pytest.mark.parametrize("path", ["status", "region/mine/status"])
@pytest.mark.parametrize("kind", KINDS)
def test_no_region_is_registered(client: httpx.Client, kind: str, path: str) -> None:
    response = client.get(f"/v2/{kind}sharedmemory/{path}")
    assert (response.status_code, response.json()) == (200, [])


@pytest.mark.parametrize("kind", KINDS)
def test_a_region_that_there_is_not_can_be_unregistered(client: httpx.Client, kind: str) -> None:
    response = client.post(f"/v2/{kind}sharedmemory/region/mine/unregister")
    assert (response.status_code, response.json()) == (200, {})


def test_an_input_in_shared_memory_is_not_offered(client: httpx.Client) -> None:
    entry = {"name": "query", "shape": [1, 2, D], "datatype": "FP32", "parameters": REGION}
    response = client.post(INFER, json={"inputs": [entry]})
    text = "input 'query' asks for shared memory, which is not offered; send its data"
    assert (response.status_code, response.json()) == (501, {"error": text})


def test_an_output_in_shared_memory_is_not_offered(client: httpx.Client) -> None:
    outputs = [{"name": "output", "parameters": REGION}]
    response = client.post(INFER, json=write_v2_json(QUERY, outputs=outputs))
    text = "output 'output' asks for shared_memory_region, which is not offered; leave it out"
    assert (response.status_code, response.json()) == (501, {"error": text})


def test_classes_of_an_output_are_not_offered(client: httpx.Client) -> None:
    outputs = [{"name": "output", "parameters": {"classification": 3}}]
    response = client.post(INFER, json=write_v2_json(QUERY, outputs=outputs))
    text = "output 'output' asks for classification, which is not offered; leave it out"
    assert (response.status_code, response.json()) == (501, {"error": text})


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/v2/systemsharedmemory/status"),
        ("GET", "/v2/cudasharedmemory/unregister"),
        ("GET", "/v2/cudasharedmemory/region/mine/register"),
    ],
)
def test_another_method_is_405(client: httpx.Client, method: str, path: str) -> None:
    response = client.request(method, path)
    assert response.status_code == 405
    assert response.json() == {"error": f"{method} is not served at {path}"}
