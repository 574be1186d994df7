"""The application: its life, and the one form that all errors have."""

import asyncio
import logging
import shutil
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from service.app import create_app
from service.engine.control import Control
from service.engine.directories import DEMO
from service.errors import (
    InvalidRequestError,
    NotFoundError,
    NotOfferedError,
    RequestTooLargeError,
    ServiceError,
    StartError,
    UnavailableError,
    UnsupportedEncodingError,
    UnsupportedMediaError,
)
from service.settings import Settings
from service.state import State

PATIENCE_S = 10
QUERY = {"name": "query", "shape": [1, 1, 6], "datatype": "FP32", "data": [1, 2, 3, 4, 5, 6]}
Serve = Callable[..., AbstractAsyncContextManager[httpx.AsyncClient]]


@pytest.fixture
def serve(settings: Settings) -> Serve:
    """Runs an application until the end of a block; it is loaded, or has failed to be."""

    @asynccontextmanager
    async def run(
        edit: Callable[[FastAPI], None] = lambda _: None, *, wait: bool = True, **changes: Any
    ) -> AsyncIterator[httpx.AsyncClient]:
        loaded, failures = asyncio.Event(), list[str]()

        def on_failure(reason: str) -> None:
            failures.append(reason)
            loaded.set()

        changed = settings.model_copy(update=changes)
        app = create_app(changed, lambda _: loaded.set(), on_failure)
        edit(app)
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with app.router.lifespan_context(app):
            if wait:
                await asyncio.wait_for(loaded.wait(), PATIENCE_S)
            async with httpx.AsyncClient(
                transport=transport, base_url="http://limelight"
            ) as opened:
                opened.headers["failures"] = "; ".join(failures)
                yield opened

    return run


async def test_a_loaded_application_is_ready_and_answers(serve: Serve) -> None:
    async with serve() as client:
        assert (await client.get("/v2/health/ready")).json() == {"ready": True}
        answer = await client.post("/v2/models/demo/infer", json={"inputs": [QUERY], "id": "7"})
    assert answer.status_code == 200
    assert answer.json()["id"] == "7"
    assert answer.headers["Limelight-Graph"] == "fused_weights"
    assert answer.headers["Server-Timing"].startswith("queue;dur=")
    assert answer.headers["X-Request-Id"]


async def test_while_the_models_load_the_application_lives_but_is_not_ready(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    load_models, allowed = State.load_models, threading.Event()

    def load_slowly(state: State) -> None:
        allowed.wait(PATIENCE_S)
        load_models(state)

    monkeypatch.setattr(State, "load_models", load_slowly)
    async with serve(wait=False) as client:
        live = await client.get("/v2/health/live")
        ready = await client.get("/v2/health/ready")
        answer = await client.post("/v1/attention", json={"query": [[1] * 6]})
        allowed.set()
    assert (live.status_code, live.json()) == (200, {"live": True})
    assert (ready.status_code, ready.json()) == (
        503,
        {"error": "the server is not ready: starting"},
    )
    assert answer.status_code == 503
    assert answer.json() == {"error": "the server is not ready: starting; try again later"}
    assert answer.headers["Retry-After"] == "1"


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (StartError("weights.bin is missing"), "weights.bin is missing"),
        (RuntimeError("onnxruntime failed"), "onnxruntime failed"),
        (MemoryError(), "MemoryError"),
    ],
)
async def test_an_application_that_cannot_load_says_why_and_lives_on(
    serve: Serve,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: Exception,
    reason: str,
) -> None:
    def fail(_: State) -> None:
        raise error

    monkeypatch.setattr(State, "load_models", fail)
    with caplog.at_level(logging.ERROR):
        async with serve() as client:
            live = await client.get("/v2/health/live")
            ready = await client.get("/v2/health/ready")
            answer = await client.post("/v2/models/demo/infer", json={"inputs": [QUERY]})
    assert client.headers["failures"] == reason
    assert live.status_code == 200
    assert (ready.status_code, ready.json()) == (503, {"error": "the server is not ready: failed"})
    assert answer.status_code == 503
    traceback = [record.message for record in caplog.records]
    assert traceback == (
        [] if isinstance(error, StartError) else ["the models could not be loaded"]
    )


async def test_at_its_end_an_application_stops(serve: Serve) -> None:
    phases, states = list[str](), list[State]()
    async with serve(lambda app: states.append(app.state.service)):
        phases.append(states[0].phase)
    phases.append(states[0].phase)
    assert phases == ["ready", "stopping"]


async def test_an_application_follows_the_directory_of_models_if_it_is_told_to(
    serve: Serve, tmp_path: Path
) -> None:
    changes = {"models": tmp_path, "model_control": "poll", "model_poll_interval_s": 0.01}
    async with serve(**changes) as client:
        assert (await client.get("/v2/health/ready")).status_code == 200
        assert (await client.get("/v2/models")).json() == {"models": []}
        shutil.copytree(DEMO, tmp_path, dirs_exist_ok=True)
        async with asyncio.timeout(PATIENCE_S):
            # The directory is looked at again and again; nothing announces it.
            while (await client.get("/v2/models/demo")).status_code != 200:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
    threads = {thread.name for thread in threading.enumerate()}
    assert not {name for name in threads if name.startswith("control")}


@pytest.mark.parametrize("mode", ["none", "explicit"])
async def test_an_application_leaves_the_directory_alone_if_it_is_not(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    looks = list[None]()
    monkeypatch.setattr(Control, "scan", lambda _: looks.append(None))
    async with serve(model_control=mode, model_poll_interval_s=0.001):
        await asyncio.sleep(0.02)
    assert looks == []


async def test_applications_share_nothing(serve: Serve) -> None:
    async with serve() as first, serve() as second:
        await first.post("/v1/attention", json={"query": [[1] * 6]})
        counted, none = await first.get("/metrics"), await second.get("/metrics")
    sample = 'limelight_requests_total{model="demo",outcome="ok",version="1"} 1.0'
    assert sample in counted.text
    assert sample not in none.text


ERRORS = [
    ServiceError, InvalidRequestError, NotFoundError, RequestTooLargeError, UnsupportedMediaError,
    UnsupportedEncodingError, NotOfferedError, UnavailableError,
]  # fmt: skip


def raise_at(path: str, error: Exception) -> Callable[[FastAPI], None]:
    """Adds an endpoint that fails."""

    def edit(app: FastAPI) -> None:
        @app.get(path)
        async def fail() -> None:
            raise error

    return edit


@pytest.mark.parametrize("error", ERRORS)
async def test_every_error_is_an_object_with_its_text(
    serve: Serve, error: type[ServiceError]
) -> None:
    async with serve(raise_at("/fail", error("what came, what was expected"))) as client:
        answer = await client.get("/fail")
    assert answer.status_code == error.status
    assert answer.json() == {"error": "what came, what was expected"}
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.headers["X-Request-Id"]
    for name, value in error.headers.items():
        assert answer.headers[name] == value


async def test_an_unknown_fault_tells_no_details_but_has_an_id(serve: Serve) -> None:
    error = RuntimeError("/secret/path at 0x7f00")
    async with serve(raise_at("/fail", error)) as client:
        answer = await client.get("/fail", headers={"X-Request-Id": "mine"})
    assert answer.status_code == 500
    assert answer.json() == {"error": "the server failed; its log says why"}
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.headers["X-Request-Id"] == "mine"


async def test_a_parameter_that_fastapi_refuses_is_told_in_the_same_form(serve: Serve) -> None:
    def edit(app: FastAPI) -> None:
        @app.get("/count")
        async def count(number: int) -> int:
            return number

    async with serve(edit) as client:
        answer = await client.get("/count?number=many")
    assert answer.status_code == 400
    assert answer.json() == {
        "error": "query.number: Input should be a valid integer, unable to parse string as an "
        "integer"
    }


async def test_a_text_that_utf8_cannot_hold_is_written_with_escapes(serve: Serve) -> None:
    error = InvalidRequestError("input '\ud800' is unknown \N{SNOWMAN}")
    async with serve(raise_at("/fail", error)) as client:
        answer = await client.get("/fail")
    assert answer.json() == {"error": "input '\\ud800' is unknown \N{SNOWMAN}"}


@pytest.mark.parametrize(
    ("method", "path", "status", "said"),
    [
        ("GET", "/nothing", 404, "nothing is served at /nothing"),
        ("GET", "/v2/models/demo/", 404, "nothing is served at /v2/models/demo/"),
        ("POST", "/v2/health/live", 405, "POST is not served at /v2/health/live"),
        ("GET", "/v1/attention", 405, "GET is not served at /v1/attention"),
        ("GET", "/page/nothing.js", 404, "nothing is served at /page/nothing.js"),
        ("GET", "/v2/models/layer", 404, "model 'layer' is not served here; served: demo"),
    ],
)
async def test_what_is_not_served_is_told_in_the_same_form(
    serve: Serve, method: str, path: str, status: int, said: str
) -> None:
    async with serve() as client:
        answer = await client.request(method, path)
    assert (answer.status_code, answer.json()) == (status, {"error": said})
    assert ("Allow" in answer.headers) == (status == 405)
