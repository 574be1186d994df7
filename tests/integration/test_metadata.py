"""What the server says of itself and of its model."""

from typing import Any

import httpx
import pytest

from tests.integration.demo import D, H


def get(client: httpx.Client, path: str) -> Any:
    """The JSON of a page that must be there."""
    response = client.get(path)
    assert response.status_code == 200, response.text
    assert response.headers["Content-Type"] == "application/json"
    return response.json()


@pytest.mark.parametrize("path", ["/v2", "/v2/", "/v2?verbose=1"])
def test_the_server_names_itself_its_version_and_the_extensions_that_work(
    client: httpx.Client, path: str
) -> None:
    metadata = get(client, path)
    assert metadata["name"] == "limelight"
    assert metadata["version"].count(".") == 2
    extensions = set(metadata["extensions"]) - {"model_repository"}  # where clients may load
    assert extensions == {
        "binary_tensor_data",
        "model_configuration",
        "parameters",
        "schedule_policy",
        "statistics",
    }


def test_the_models_are_listed_by_name(client: httpx.Client) -> None:
    assert get(client, "/v2/models") == {"models": ["demo"]}


@pytest.mark.parametrize("path", ["/v2/models/demo", "/v2/models/demo/versions/1"])
def test_the_model_describes_every_tensor(client: httpx.Client, path: str) -> None:
    metadata = get(client, path)
    assert metadata["name"] == "demo"
    assert metadata["versions"] == ["1"]
    assert metadata["platform"] == "onnxruntime_onnx"
    assert metadata["inputs"] == [
        {"name": "query", "datatype": "FP32", "shape": [-1, -1, D]},
        {"name": "key", "datatype": "FP32", "shape": [-1, -1, D]},
        {"name": "value", "datatype": "FP32", "shape": [-1, -1, D]},
        {"name": "mask", "datatype": "BOOL", "shape": [-1, 1, -1, -1]},
        {"name": "key_mask", "datatype": "BOOL", "shape": [-1, -1]},
        {"name": "bias", "datatype": "FP32", "shape": [-1, 1, -1, -1]},
    ]
    assert metadata["outputs"] == [
        {"name": "output", "datatype": "FP32", "shape": [-1, -1, D]},
        {"name": "attention_weights", "datatype": "FP32", "shape": [-1, H, -1, -1]},
    ]


def test_the_model_says_where_it_computes_and_its_sizes(client: httpx.Client) -> None:
    properties = get(client, "/v2/models/demo")["properties"]
    assert properties["provider"] in {"cpu", "cuda"}
    assert properties["d_model"] == str(D)
    assert properties["num_heads"] == str(H)


@pytest.mark.parametrize("path", ["/v2/models/demo/ready", "/v2/models/demo/versions/1/ready"])
def test_a_loaded_model_is_ready(client: httpx.Client, path: str) -> None:
    assert get(client, path) == {"name": "demo", "ready": True}


NO_MODEL = "model 'other' is not served here; served: demo"
NO_VERSION = "model 'demo' has no version '2', expected one of 1"


@pytest.mark.parametrize("end", ["", "/ready"])
@pytest.mark.parametrize(
    ("model", "text"),
    [
        pytest.param("other", NO_MODEL, id="model"),
        pytest.param("other/versions/1", NO_MODEL, id="model-with-a-version"),
        pytest.param("demo/versions/2", NO_VERSION, id="version"),
    ],
)
def test_what_is_not_served_is_404_with_what_there_is(
    client: httpx.Client, model: str, end: str, text: str
) -> None:
    response = client.get(f"/v2/models/{model}{end}")
    assert (response.status_code, response.json()) == (404, {"error": text})


@pytest.mark.parametrize(
    ("model", "text"), [("other", NO_MODEL), ("demo/versions/2", NO_VERSION)], ids=str
)
def test_inference_of_what_is_not_served_is_404(
    client: httpx.Client, model: str, text: str
) -> None:
    response = client.post(f"/v2/models/{model}/infer", content="{}")
    assert (response.status_code, response.json()) == (404, {"error": text})


@pytest.mark.parametrize(
    ("options", "text"),
    [({"model": "other"}, NO_MODEL), ({"version": "2"}, NO_VERSION)],
    ids=["model", "version"],
)
def test_attention_of_what_is_not_served_is_404(
    client: httpx.Client, options: dict[str, str], text: str
) -> None:
    query = [[0.5] * D]
    in_the_body = client.post("/v1/attention", json={"query": query, **options})
    in_the_address = client.post("/v1/attention", json={"query": query}, params=options)
    for response in (in_the_body, in_the_address):
        assert (response.status_code, response.json()) == (404, {"error": text})


def test_the_model_can_be_named_at_the_friendly_door(client: httpx.Client) -> None:
    body = {"query": [[0.5] * D], "model": "demo", "version": "1"}
    response = client.post("/v1/attention", json=body)
    assert response.status_code == 200
    assert response.json()["model_name"] == "demo"
    assert response.json()["model_version"] == "1"
