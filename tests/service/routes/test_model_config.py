"""The configuration that a model is served with."""

from pathlib import Path
from typing import Any

import httpx
import pytest

from model.contract import AttentionSpec
from service.engine.model import Model
from service.engine.model_config import ModelConfig
from service.engine.session import Provider, Session
from service.engine.sizes import Limits
from service.state import State

PATHS = ["/v2/models/demo/config", "/v2/models/demo/versions/1/config"]


def open_nothing(_: Path) -> Session:
    raise NotImplementedError


def serve(state: State, limits: Limits, provider: Provider = "cpu", **config: Any) -> None:
    """Serve a layer as a config.pbtxt with these fields would have it."""
    directory, spec = Path("/m/layer/1"), AttentionSpec(8, 2, kdim=10)
    model = Model(directory, spec, provider, open_nothing, limits, ModelConfig(**config))
    state.repository.add(model)


async def read(client: httpx.AsyncClient, path: str = "/v2/models/layer/config") -> Any:
    """The configuration."""
    answer = await client.get(path)
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, "application/json")
    return answer.json()


@pytest.mark.parametrize("path", PATHS)
async def test_it_says_what_a_model_without_a_config_does(
    client: httpx.AsyncClient, path: str
) -> None:
    assert await read(client, path) == {
        "name": "demo",
        "platform": "onnxruntime_onnx",
        "backend": "onnxruntime",
        "version_policy": {"all": {}},
        "max_batch_size": 256,
        "input": [
            {"name": "query", "data_type": "TYPE_FP32", "dims": [-1, 6], "optional": False},
            {"name": "key", "data_type": "TYPE_FP32", "dims": [-1, 6], "optional": True},
            {"name": "value", "data_type": "TYPE_FP32", "dims": [-1, 6], "optional": True},
            {"name": "mask", "data_type": "TYPE_BOOL", "dims": [1, -1, -1], "optional": True},
            {"name": "key_mask", "data_type": "TYPE_BOOL", "dims": [-1], "optional": True},
            {"name": "bias", "data_type": "TYPE_FP32", "dims": [1, -1, -1], "optional": True},
        ],
        "output": [
            {"name": "output", "data_type": "TYPE_FP32", "dims": [-1, 6]},
            {"name": "attention_weights", "data_type": "TYPE_FP32", "dims": [3, -1, -1]},
        ],
        "instance_group": [{"kind": "KIND_CPU", "count": 1}],
    }


@pytest.mark.parametrize(("configured", "said"), [(4, 4), (1000, 256), (None, 256), (0, 0)])
async def test_the_batch_size_is_the_lower_of_setting_and_config(
    client: httpx.AsyncClient, state: State, limits: Limits, configured: int | None, said: int
) -> None:
    serve(state, limits, max_batch_size=configured)
    found = await read(client)
    assert found["max_batch_size"] == said
    assert found["input"][0]["dims"] == ([-1, 8] if said else [-1, -1, 8])


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"max_queue_delay_us": 500}, {"max_queue_delay_microseconds": 500}),
        ({"max_queue_delay_us": 0}, None),
        ({"max_queue_delay_us": 500, "max_batch_size": 0}, None),
    ],
)
async def test_batching_is_said_where_requests_wait_for_others(
    client: httpx.AsyncClient, state: State, limits: Limits, config: dict[str, Any], said: object
) -> None:
    serve(state, limits, **config)
    assert (await read(client)).get("dynamic_batching") == said


@pytest.mark.parametrize(("configured", "said"), [(None, 3), (2, 2), (8, 3)])
async def test_no_more_instances_than_threads_compute_at_the_same_time(
    client: httpx.AsyncClient, state: State, limits: Limits, configured: int | None, said: int
) -> None:
    state.settings = state.settings.model_copy(update={"inference_threads": 3})
    serve(state, limits, "cuda", instance_count=configured)
    assert (await read(client))["instance_group"] == [{"kind": "KIND_GPU", "count": said}]


@pytest.mark.parametrize("path", ["/v2/models/other/config", "/v2/models/demo/versions/2/config"])
async def test_what_is_not_served_has_no_configuration(
    client: httpx.AsyncClient, path: str
) -> None:
    answer = await client.get(path)
    assert answer.status_code == 404
    assert answer.json()["error"].startswith("model '")


async def test_a_model_is_not_described_before_it_is_ready(
    client: httpx.AsyncClient, state: State
) -> None:
    state.phase = "starting"
    assert (await client.get(PATHS[0])).status_code == 503
