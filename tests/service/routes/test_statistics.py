"""The statistics over HTTP, below a socket."""

from typing import Any

import httpx
import pytest

from service.state import State

ALL, MODEL, VERSION = (
    "/v2/models/stats",
    "/v2/models/demo/stats",
    "/v2/models/demo/versions/1/stats",
)
INFER = "/v2/models/demo/infer"


def write_v2(rows: int) -> dict[str, Any]:
    """A request of some batch rows."""
    data = [0.5] * (rows * 2 * 6)
    return {"inputs": [{"name": "query", "shape": [rows, 2, 6], "datatype": "FP32", "data": data}]}


async def read(client: httpx.AsyncClient, path: str) -> dict[str, Any]:
    """The statistics of the demo."""
    answer = await client.get(path)
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, "application/json")
    (stats,) = answer.json()["model_stats"]
    return dict(stats)


@pytest.mark.parametrize("path", [ALL, MODEL, VERSION])
async def test_a_model_without_requests_has_zeros(client: httpx.AsyncClient, path: str) -> None:
    zero = {"count": 0, "ns": 0}
    names = (
        "success", "fail", "queue", "compute_input", "compute_infer", "compute_output",
        "cache_hit", "cache_miss",
    )  # fmt: skip
    assert await read(client, path) == {
        "name": "demo",
        "version": "1",
        "last_inference": 0,
        "inference_count": 0,
        "execution_count": 0,
        "inference_stats": dict.fromkeys(names, zero),
        "response_stats": {},
        "batch_stats": [],
        "memory_usage": [],
    }


@pytest.mark.parametrize("path", [ALL, MODEL, VERSION])
async def test_requests_move_the_counts(client: httpx.AsyncClient, path: str) -> None:
    for rows in (3, 1, 3):
        assert (await client.post(INFER, json=write_v2(rows))).status_code == 200
    assert (await client.post(INFER, json=write_v2(0))).status_code == 400
    assert (await client.post("/v1/attention", json={"query": [[0.5] * 6]})).status_code == 200
    stats = await read(client, path)
    assert (stats["inference_count"], stats["execution_count"]) == (8, 4)
    counts = {name: each["count"] for name, each in stats["inference_stats"].items()}
    assert counts == {
        "success": 4, "fail": 1, "queue": 4, "compute_input": 4, "compute_infer": 4,
        "compute_output": 4, "cache_hit": 0, "cache_miss": 0,
    }  # fmt: skip
    runs = [(each["batch_size"], each["compute_infer"]["count"]) for each in stats["batch_stats"]]
    assert runs == [(1, 2), (3, 2)]


async def test_without_a_version_all_versions_are_listed(
    client: httpx.AsyncClient, state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    state.statistics.add("demo", "10")
    state.statistics.add("demo", "9")
    state.statistics.add("layer", "2")
    monkeypatch.setattr(state.repository, "versions", lambda _: ["1", "9", "10"])
    of_demo = (await client.get(MODEL)).json()["model_stats"]
    assert [(each["name"], each["version"]) for each in of_demo] == [
        ("demo", "1"),
        ("demo", "9"),
        ("demo", "10"),
    ]
    of_all = (await client.get(ALL)).json()["model_stats"]
    assert of_all[:3] == of_demo
    assert [(each["name"], each["version"]) for each in of_all[3:]] == [("layer", "2")]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/v2/models/layer/stats", "model 'layer' is not served here; served: demo"),
        ("/v2/models/layer/versions/1/stats", "model 'layer' is not served here; served: demo"),
        ("/v2/models/demo/versions/2/stats", "model 'demo' has no version '2', expected one of 1"),
    ],
)
async def test_what_is_not_served_is_not_found(
    client: httpx.AsyncClient, path: str, text: str
) -> None:
    answer = await client.get(path)
    assert (answer.status_code, answer.json()) == (404, {"error": text})


@pytest.mark.parametrize("path", [MODEL, VERSION])
async def test_a_server_that_starts_does_not_say_that_there_is_no_model(
    client: httpx.AsyncClient, state: State, path: str
) -> None:
    state.phase = "starting"
    answer = await client.get(path)
    text = "the server is not ready: starting; try again later"
    assert (answer.status_code, answer.json()) == (503, {"error": text})


@pytest.mark.parametrize("path", [ALL, MODEL, VERSION])
async def test_statistics_are_read_with_get(client: httpx.AsyncClient, path: str) -> None:
    answer = await client.post(path)
    assert (answer.status_code, answer.json()) == (405, {"error": f"POST is not served at {path}"})
