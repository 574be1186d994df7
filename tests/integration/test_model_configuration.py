"""The configuration of a model, and that it is true."""

import os
from collections.abc import Iterator
from typing import Any

import httpx
import numpy as np
import pytest

from tests.integration.demo import D, H
from tests.integration.doors import INFER, JSON, OUTPUTS, write_v2_binary
from tests.integration.server_process import start_server

PATH = "/v2/models/demo/config"


def read(client: httpx.Client, path: str = PATH) -> Any:
    """The configuration."""
    response = client.get(path)
    assert response.status_code == 200, response.text
    assert response.headers["Content-Type"] == JSON
    return response.json()


def test_it_describes_how_the_model_is_served(client: httpx.Client, provider: str) -> None:
    config = read(client)
    assert config["name"] == "demo"
    assert config["platform"] == "onnxruntime_onnx"
    assert config["backend"] == "onnxruntime"
    (group,) = config["instance_group"]
    assert group["kind"] == {"cpu": "KIND_CPU", "cuda": "KIND_GPU"}[provider]
    assert group["count"] > 0
    assert read(client, "/v2/models/demo/versions/1/config") == config


def test_every_tensor_of_the_metadata_is_there_without_its_batch_axis(
    client: httpx.Client,
) -> None:
    config, metadata = read(client), client.get("/v2/models/demo").json()
    for entries, tensors in (
        (config["input"], metadata["inputs"]),
        (config["output"], metadata["outputs"]),
    ):
        assert [[e["name"], e["data_type"], [-1, *e["dims"]]] for e in entries] == [
            [t["name"], f"TYPE_{t['datatype']}", t["shape"]] for t in tensors
        ]


def test_all_inputs_but_the_query_are_optional(client: httpx.Client) -> None:
    optional = {entry["name"]: entry["optional"] for entry in read(client)["input"]}
    assert optional == {
        "query": False, "key": True, "value": True, "mask": True, "key_mask": True, "bias": True,
    }  # fmt: skip


def draw_any_bytes(config: dict[str, Any], batch_size: int, length: int) -> dict[str, Any]:
    """Every input filled with random bytes, in the shape that the configuration gives it."""
    generator, dtypes = np.random.default_rng(7), {"TYPE_FP32": np.float32, "TYPE_BOOL": np.bool_}
    tensors = {}
    for entry in config["input"]:
        shape = [batch_size, *(length if size == -1 else size for size in entry["dims"])]
        dtype = np.dtype(dtypes[entry["data_type"]])
        data = generator.bytes(int(np.prod(shape)) * dtype.itemsize)
        tensors[entry["name"]] = np.frombuffer(data, dtype).reshape(shape)
    return tensors


def test_a_load_tool_that_fills_all_inputs_with_random_bytes_is_answered(
    client: httpx.Client,
) -> None:
    """perf_analyzer reads shapes and datatypes from here, and asks for every output as binary."""
    tensors = draw_any_bytes(read(client), batch_size=2, length=5)
    outputs = [{"name": name, "parameters": {"binary_data": True}} for name in OUTPUTS]
    body, headers = write_v2_binary(tensors, outputs=outputs)
    response = client.post(INFER, content=body, headers=headers)
    assert response.status_code == 200, response.text
    sizes = [output["shape"] for output in response_head(response)["outputs"]]
    assert sizes == [[2, 5, D], [2, H, 5, 5]]


def response_head(response: httpx.Response) -> Any:
    """The JSON of a binary answer."""
    length = int(response.headers["Inference-Header-Content-Length"])
    return httpx.Response(200, content=response.content[:length]).json()


@pytest.fixture(scope="module", name="narrow")
def serve_narrow_batches() -> Iterator[httpx.Client]:
    """A client of a server that takes three sequences at once."""
    if "LIMELIGHT_TEST_URL" in os.environ:
        pytest.skip("a deployed server is tested")
    with (
        start_server(LIMELIGHT_MAX_BATCH_SIZE="3") as server,
        httpx.Client(base_url=server.url) as client,
    ):
        yield client


@pytest.mark.parametrize(("batch_size", "status"), [(3, 200), (4, 400)])
def test_the_largest_batch_is_what_it_says(
    narrow: httpx.Client, batch_size: int, status: int
) -> None:
    assert read(narrow)["max_batch_size"] == 3
    body, headers = write_v2_binary({"query": np.ones((batch_size, 2, D), np.float32)})
    response = narrow.post(INFER, content=body, headers=headers)
    assert response.status_code == status
    if status == 400:
        text = "batch size is 4, expected at most 3 (LIMELIGHT_MAX_BATCH_SIZE)"
        assert response.json() == {"error": text}


def test_what_is_not_served_is_404(client: httpx.Client) -> None:
    for path, text in {
        "/v2/models/other/config": "model 'other' is not served here; served: demo",
        "/v2/models/demo/versions/2/config": "model 'demo' has no version '2', expected one of 1",
    }.items():
        response = client.get(path)
        assert (response.status_code, response.json()) == (404, {"error": text})


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_it_can_only_be_read(client: httpx.Client, method: str) -> None:
    response = client.request(method, PATH)
    assert response.status_code == 405
    assert response.json() == {"error": f"{method} is not served at {PATH}"}
    assert response.headers["Content-Type"] == JSON
