"""The endpoints, below a socket: each door's forms, and what every answer carries."""

import asyncio
import io
import json
import re
from typing import Any

import httpx
import numpy as np
import pytest
import safetensors.numpy

from service.app import create_app
from service.http.departure import STATE, Presence
from service.state import State
from tests.service.engine.work import Gate, hold, submit

QUERY = np.random.default_rng(13).standard_normal((2, 5, 6)).astype(np.float32)
LENGTH = "Inference-Header-Content-Length"


def write_v2(**members: Any) -> dict[str, Any]:
    entry = {"name": "query", "shape": [2, 5, 6], "datatype": "FP32", "data": QUERY.tolist()}
    return {"inputs": [entry]} | members


@pytest.mark.parametrize("path", ["/v2/models/demo", "/v2/models/demo/versions/1"])
async def test_a_model_is_described_and_ready_and_answers_with_and_without_a_version(
    client: httpx.AsyncClient, path: str
) -> None:
    assert (await client.get(path)).json()["name"] == "demo"
    assert (await client.get(f"{path}/ready")).json() == {"name": "demo", "ready": True}
    answer = await client.post(f"{path}/infer", json=write_v2(id="7"))
    said = answer.json()
    assert (said["model_name"], said["model_version"], said["id"]) == ("demo", "1", "7")
    assert [output["name"] for output in said["outputs"]] == ["output", "attention_weights"]


@pytest.mark.parametrize("path", ["/v2/models/layer", "/v2/models/demo/versions/2"])
async def test_another_model_or_version_is_not_found(client: httpx.AsyncClient, path: str) -> None:
    for answer in (
        await client.get(path),
        await client.get(f"{path}/ready"),
        await client.post(f"{path}/infer", json=write_v2()),
    ):
        assert answer.status_code == 404
        assert answer.json()["error"].startswith("model '")


@pytest.mark.parametrize("path", ["/v2", "/v2/"])
async def test_the_server_is_described(client: httpx.AsyncClient, path: str) -> None:
    assert (await client.get(path)).json()["name"] == "limelight"


async def test_the_models_are_listed(client: httpx.AsyncClient) -> None:
    assert (await client.get("/v2/models")).json() == {"models": ["demo"]}


async def test_binary_in_and_out_gives_the_bits_of_json(client: httpx.AsyncClient) -> None:
    parameters = {"binary_data_size": QUERY.nbytes}
    entry = {"name": "query", "shape": [2, 5, 6], "datatype": "FP32", "parameters": parameters}
    text = json.dumps({"inputs": [entry], "parameters": {"binary_data_output": True}}).encode()
    path = "/v2/models/demo/infer"
    binary = await client.post(
        path, content=text + QUERY.tobytes(), headers={LENGTH: str(len(text))}
    )
    plain = (await client.post(path, json=write_v2())).json()["outputs"]
    assert binary.headers["Content-Type"] == "application/octet-stream"
    data = binary.content[int(binary.headers[LENGTH]) :]
    wanted = [np.array(output["data"], np.float32).tobytes() for output in plain]
    assert data == b"".join(wanted)


@pytest.mark.parametrize("form", ["json", "npz", "safetensors"])
async def test_the_answer_has_the_form_of_the_request_unless_another_is_wished(
    client: httpx.AsyncClient, form: str
) -> None:
    stream = io.BytesIO()
    np.savez(stream, allow_pickle=False, query=QUERY)
    body = {
        "json": json.dumps({"query": QUERY.tolist()}).encode(),
        "npz": stream.getvalue(),
        "safetensors": safetensors.numpy.save({"query": QUERY}),
    }[form]
    headers = {"Content-Type": f"application/{'' if form == 'json' else 'x-'}{form}"}
    path = "/v1/attention?weights=mean"
    same = await client.post(path, content=body, headers=headers)
    assert same.headers["Content-Type"] == headers["Content-Type"]
    wished = await client.post(f"{path}&format=npz", content=body, headers=headers)
    with np.load(io.BytesIO(wished.content)) as found:
        assert found["output"].shape == (2, 5, 6)
        assert found["attention_weights"].shape == (2, 5, 5)
    accepted = await client.post(
        path, content=body, headers=headers | {"Accept": "application/json"}
    )
    assert np.array(accepted.json()["output"]).shape == (2, 5, 6)


async def test_tensors_without_a_batch_axis_come_back_without_one(
    client: httpx.AsyncClient,
) -> None:
    body = {"query": QUERY[0].tolist(), "weights": "per_head"}
    said = (await client.post("/v1/attention", json=body)).json()
    assert np.array(said["output"]).shape == (5, 6)
    assert np.array(said["attention_weights"]).shape == (3, 5, 5)


@pytest.mark.parametrize("path", ["/v2/models/demo/infer", "/v1/attention"])
async def test_every_answer_says_its_times_its_graph_and_its_id(
    client: httpx.AsyncClient, path: str
) -> None:
    body = write_v2() if "v2" in path else {"query": QUERY.tolist(), "weights": "per_head"}
    answer = await client.post(path, json=body, headers={"X-Request-Id": "mine"})
    timing = answer.headers["Server-Timing"]
    assert re.fullmatch(r"queue;dur=\d+\.\d{3}, compute;dur=\d+\.\d{3}", timing)
    assert answer.headers["Limelight-Graph"] == "fused_weights"
    assert answer.headers["X-Request-Id"] == "mine"


@pytest.mark.parametrize("path", ["/v2/models/demo/infer", "/v1/attention"])
async def test_an_application_that_is_not_ready_reads_no_body(
    client: httpx.AsyncClient, state: State, path: str
) -> None:
    state.phase = "stopping"
    answer = await client.post(path, content=b"no JSON")
    assert answer.status_code == 503
    assert answer.json() == {"error": "the server is not ready: stopping; try again later"}


async def test_metrics_are_text(client: httpx.AsyncClient) -> None:
    answer = await client.get("/metrics")
    assert answer.headers["Content-Type"].startswith("text/plain")
    assert "limelight_info" in answer.text


@pytest.mark.parametrize("path", ["/", "/docs"])
async def test_pages_load_nothing_from_elsewhere(client: httpx.AsyncClient, path: str) -> None:
    answer = await client.get(path)
    assert answer.status_code == 200
    sources = re.findall(r"""(?:src|href|url)\s*[=:]\s*['"]([^'"]+)""", answer.text)
    assert sources
    for source in sources:
        assert "//" not in source
        if not source.startswith("#"):
            assert (await client.get(source)).status_code == 200, source


@pytest.mark.parametrize("path", ["/v2/models/demo/infer", "/v1/attention"])
async def test_a_client_that_leaves_while_its_request_waits_costs_no_computation(
    state: State, path: str
) -> None:
    app = create_app(state.settings)
    app.state.service = state
    gate = Gate()
    held = await hold(state.scheduler, gate)
    body = json.dumps(write_v2() if "v2" in path else {"query": QUERY.tolist()}).encode()
    presence = Presence()

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(_: Any) -> None:
        """Nobody listens."""

    scope = {
        "type": "http",
        "method": "POST",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [],
        "http_version": "1.1",
        "scheme": "http",
        "root_path": "",
        "state": {STATE: presence},
    }
    asked = asyncio.create_task(app(scope, receive, send))
    # The request has to be in the queue first, which nothing announces.
    while not state.scheduler.waiting:  # noqa: ASYNC110
        await asyncio.sleep(0)
    presence.leave()
    await asyncio.wait_for(asked, 10)
    gate.opened.set()
    await held
    await submit(state.scheduler, lambda: None)  # behind it in the queue
    said = state.metrics.render().decode()
    assert 'outcome="left",version="1"} 1.0' in said
    assert 'limelight_compute_seconds_count{model="demo",version="1"} 0.0' in said
