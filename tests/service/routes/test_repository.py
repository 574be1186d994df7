"""The endpoints of the model repository."""

import json
import shutil
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio

from service.app import create_app
from service.engine.directories import DEMO
from service.state import State

INDEX = "/v2/repository/index"
MODELS = "/v2/repository/models"
DEMO_ENTRY = {"name": "demo", "version": "1", "state": "READY", "reason": ""}
MakeState = Callable[..., State]


@pytest.fixture(name="explicit")
def make_explicit(make_state: MakeState, tmp_path: Path) -> State:
    """A state that loads on request, with the models `demo` and `broken`."""
    for name in ("demo", "broken"):
        shutil.copytree(DEMO / "demo" / "1", tmp_path / name / "1")
    (tmp_path / "broken" / "1" / "fused.onnx").unlink()
    state = make_state(models=tmp_path, model_control="explicit", load_models="demo")
    state.load_models()
    state.phase = "ready"
    return state


@pytest_asyncio.fixture(name="client")
async def make_client(explicit: State) -> AsyncIterator[httpx.AsyncClient]:
    app = create_app(explicit.settings)
    app.state.service = explicit
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://limelight") as opened:
        yield opened


@pytest.mark.parametrize("body", [b"", b"{}", b'{"ready": false}'])
async def test_the_index_lists_all(client: httpx.AsyncClient, body: bytes) -> None:
    answer = await client.post(INDEX, content=body)
    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == "application/json"
    broken = {"name": "broken", "version": "1", "state": "UNAVAILABLE", "reason": "not loaded"}
    assert answer.json() == [broken, DEMO_ENTRY]


async def test_the_index_lists_what_is_ready(client: httpx.AsyncClient) -> None:
    assert (await client.post(INDEX, json={"ready": True})).json() == [DEMO_ENTRY]


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Content-Type": "application/x-www-form-urlencoded"},
        {"Content-Type": "application/octet-stream"},
        {"Transfer-Encoding": "chunked"},
    ],
    ids=str,
)
@pytest.mark.parametrize("body", [b"", b"{}", b'{"parameters": {"unload_dependents": false}}'])
async def test_a_model_is_unloaded_and_loaded_whatever_type_the_body_has(
    client: httpx.AsyncClient, headers: dict[str, str], body: bytes
) -> None:
    for action, status in (("unload", 404), ("load", 200)):
        answer = await client.post(f"{MODELS}/demo/{action}", content=body, headers=headers)
        assert (answer.status_code, answer.content) == (200, b"{}")
        assert (await client.get("/v2/models/demo")).status_code == status


async def test_a_model_that_fails_says_why(client: httpx.AsyncClient) -> None:
    answer = await client.post(f"{MODELS}/broken/load")
    assert answer.status_code == 400
    reason = "fused.onnx is missing"
    assert answer.json() == {"error": f"model 'broken' is not loaded: version 1: {reason}"}
    assert (await client.post(INDEX)).json()[0]["reason"] == reason


@pytest.mark.parametrize("action", ["load", "unload"])
async def test_a_model_that_is_not_there_is_not_found(
    client: httpx.AsyncClient, action: str
) -> None:
    answer = await client.post(f"{MODELS}/other/{action}")
    assert answer.status_code == 404
    assert answer.json()["error"].startswith("the directory of models has no model 'other'")


@pytest.mark.parametrize("action", ["load", "unload"])
@pytest.mark.parametrize("name", ["%2e%2e", "..%5cdemo", "%00", "-a", "stats", "a%20b", "d%C3%A9"])
async def test_a_name_that_no_model_can_have_reaches_no_file(
    client: httpx.AsyncClient,
    explicit: State,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    action: str,
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(explicit, "control", None)
        answer = await client.post(f"{MODELS}/{name}/{action}")
    assert answer.status_code == 404
    assert answer.json()["error"].startswith("no model can be called '")


@pytest.mark.parametrize("path", ["demo%2f..%2fdemo", "%2e%2e/demo", "a/b"])
async def test_a_name_with_a_slash_is_another_path(client: httpx.AsyncClient, path: str) -> None:
    answer = await client.post(f"{MODELS}/{path}/load")
    assert answer.status_code == 404


@pytest.mark.parametrize(
    "path", ["/v2/repository/mine/index", "/v2/repository/mine/models/demo/load",
             "/v2/repository/mine/models/demo/unload"],
)  # fmt: skip
async def test_a_repository_has_no_name(client: httpx.AsyncClient, path: str) -> None:
    answer = await client.post(path)
    assert answer.status_code == 501
    assert answer.json() == {
        "error": "repositories have no names here: leave it out, as in /v2/repository/index"
    }


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        (INDEX, b"{", 400),
        (INDEX, b'{"ready": 1}', 400),
        (f"{MODELS}/demo/load", b"[]", 400),
        (f"{MODELS}/demo/unload", b"{", 400),
        (f"{MODELS}/demo/load", json.dumps({"parameters": {"config": "{}"}}).encode(), 501),
    ],
)
async def test_a_body_that_does_not_fit_changes_nothing(
    client: httpx.AsyncClient, path: str, body: bytes, status: int
) -> None:
    answer = await client.post(path, content=body)
    assert answer.status_code == status
    assert answer.json()["error"]
    assert (await client.get("/v2/models/demo")).status_code == 200


async def test_a_body_is_bounded(make_state: MakeState) -> None:
    state = make_state(max_request_bytes=10, model_control="explicit")
    state.phase = "ready"
    app = create_app(state.settings)
    app.state.service = state
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://limelight") as client:
        for path in (INDEX, f"{MODELS}/demo/load", f"{MODELS}/demo/unload"):
            answer = await client.post(path, content=b'{"a": "123456"}')
            assert answer.status_code == 413


@pytest.mark.parametrize("phase", ["starting", "stopping"])
async def test_a_server_that_is_not_ready_changes_nothing_but_lists(
    client: httpx.AsyncClient, explicit: State, phase: Any
) -> None:
    explicit.phase = phase
    for action in ("load", "unload"):
        answer = await client.post(f"{MODELS}/demo/{action}")
        assert answer.status_code == 503
        assert answer.json() == {"error": f"the server is not ready: {phase}; try again later"}
    assert (await client.post(INDEX, json={"ready": True})).json() == [DEMO_ENTRY]


async def test_every_body_has_an_example_that_is_taken(client: httpx.AsyncClient) -> None:
    document = (await client.get("/openapi.json")).json()
    for path in (INDEX, f"{MODELS}/{{name}}/load", f"{MODELS}/{{name}}/unload"):
        operation = document["paths"][path]["post"]
        content = operation["requestBody"]["content"]["application/json"]
        answer = await client.post(path.replace("{name}", "demo"), json=content["example"])
        assert answer.status_code == 200
        assert set(operation["responses"]) >= {"200", "400", "413"}
