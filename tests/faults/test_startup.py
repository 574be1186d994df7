"""Faults of starting: ready too early, dead while loading, and cores that are not there."""

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from service.app import create_app
from service.engine.machine import count_cores
from service.settings import PREFIX, Settings
from service.state import State
from tests.faults.process_facts import confined, count_threads, needs_linux, read_cpu_ns
from tests.integration.demo import check_close, draw_tokens, expect
from tests.integration.doors import (
    ATTENTION,
    DOORS,
    INFER,
    ask,
    write_npz,
    write_safetensors,
    write_v2_binary,
)
from tests.integration.server_process import ServerProcess, start_server

pytestmark = pytest.mark.skipif(
    "LIMELIGHT_TEST_URL" in os.environ, reason="a deployed server is tested"
)
PATIENCE_S = 10
WINDOW_S = 1.0
TRIES = 5
IDLE_SHARE = 0.02
TENSORS = draw_tokens()
NOT_READY = "the server is not ready: starting"


@pytest.fixture(name="settings")
def read_settings(monkeypatch: pytest.MonkeyPatch) -> Settings:
    """The settings of a process without variables of ours."""
    for name in [name for name in os.environ if name.upper().startswith(PREFIX)]:
        monkeypatch.delenv(name)
    return Settings.load()


@pytest.fixture(name="gate")
def hold_the_models_back(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Models are loaded once this event is set."""
    load_models, gate = State.load_models, threading.Event()

    def load_late(state: State) -> None:
        gate.wait(PATIENCE_S)
        load_models(state)

    monkeypatch.setattr(State, "load_models", load_late)
    yield gate
    gate.set()


@asynccontextmanager
async def loading(settings: Settings, loaded: asyncio.Event) -> AsyncIterator[httpx.AsyncClient]:
    """An application whose models may still be loading."""
    app = create_app(settings, lambda _: loaded.set())
    transport = httpx.ASGITransport(app)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://limelight") as client,
    ):
        yield client


POSTS: dict[str, tuple[str, bytes, dict[str, str]]] = {
    "v2": (INFER, *write_v2_binary(TENSORS)),
    "v2-version": (INFER.replace("/infer", "/versions/1/infer"), *write_v2_binary(TENSORS)),
    "v2-absent": ("/v2/models/absent/infer", *write_v2_binary(TENSORS)),
    "npz": (ATTENTION, write_npz(TENSORS), {}),
    "safetensors": (ATTENTION, write_safetensors(TENSORS), {}),
    "empty": (ATTENTION, b"", {}),
}
WAITING = ["/v2/health/ready", "/v2/models/demo/ready", "/v2/models/demo", "/v2/models/absent"]


async def test_while_models_load_the_server_lives_and_is_ready_for_nothing(
    settings: Settings, gate: threading.Event
) -> None:
    """A probe of life must not fail, one of readiness must, and no inference may slip in.

    SeldonIO/MLServer #2056; kserve/kserve #3262, #1791, #799, #818, #2775, #1915, #3113;
    triton-inference-server/server #7014.
    """
    loaded = asyncio.Event()
    async with loading(settings, loaded) as client:
        assert (await client.get("/v2/health/live")).json() == {"live": True}
        answers = [await client.get(path) for path in WAITING]
        for path, body, headers in POSTS.values():
            answers.append(await client.post(path, content=body, headers=headers))
        assert [answer.status_code for answer in answers] == [503] * len(answers)
        for answer in answers:
            assert answer.json()["error"].startswith(NOT_READY)
            assert answer.headers["Retry-After"] == "1"
        gate.set()
        await asyncio.wait_for(loaded.wait(), PATIENCE_S)
        assert (await client.get("/v2/health/ready")).json() == {"ready": True}
        path, body, headers = POSTS["v2"]
        assert (await client.post(path, content=body, headers=headers)).status_code == 200


async def test_failed_models_are_never_ready_however_few_there_are(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of no models all are loaded (SeldonIO/MLServer #2056)."""
    failed = asyncio.Event()
    loop = asyncio.get_running_loop()

    def fail(_: State) -> None:
        loop.call_soon_threadsafe(failed.set)
        raise RuntimeError

    monkeypatch.setattr(State, "load_models", fail)
    async with loading(settings, asyncio.Event()) as client:
        await asyncio.wait_for(failed.wait(), PATIENCE_S)
        ready = await client.get("/v2/health/ready")
        path, body, headers = POSTS["v2"]
        answer = await client.post(path, content=body, headers=headers)
    assert (ready.status_code, answer.status_code) == (503, 503)


def pick_cores(number: int) -> set[int]:
    """Some of the cores that this process may use."""
    if count_cores() < number:
        pytest.skip(f"this machine grants fewer than {number} cores")
    return set(sorted(os.sched_getaffinity(0))[:number])


@needs_linux
def test_there_are_as_many_threads_as_cores_that_the_process_may_use() -> None:
    """A pool sized from the host is throttled, or hangs, in a small container.

    microsoft/onnxruntime #8313, #10113, #10166, #7207; triton-inference-server/server #6325;
    NeptuneHub/AudioMuse-AI #787, #315.
    """
    threads = []
    for number in (1, 2):
        # numpy's own pool is none of ours
        with confined(pick_cores(number)), start_server(OPENBLAS_NUM_THREADS="1") as server:
            threads.append(count_threads(server.process.pid))
    # One more that computes, and one that helps a run which is alone.
    assert threads[1] - threads[0] == 2


@needs_linux
@pytest.mark.parametrize("intra_op_threads", ["1", "3"])
def test_a_server_on_one_core_answers_and_complains_of_nothing(intra_op_threads: str) -> None:
    """onnxruntime pins its threads to cores of the host, unless it is told how many there are.

    microsoft/onnxruntime #8313, #10113, #10166.
    """
    settings: dict[str, Any] = {"LIMELIGHT_INTRA_OP_THREADS": intra_op_threads}
    with confined(pick_cores(1)), start_server(**settings) as server:
        with httpx.Client(base_url=server.url) as client:
            for door in DOORS:
                check_close(ask(client, door, TENSORS), expect(TENSORS))
        assert "affinity" not in server.read_log()


def find_idle_share(server: ServerProcess) -> float:
    """The part of one core that a server takes while nobody asks; the least of some windows."""
    shares = []
    for _ in range(TRIES):
        before_ns = read_cpu_ns(server.process.pid)
        threading.Event().wait(WINDOW_S)  # what is measured is what happens in this time
        shares.append((read_cpu_ns(server.process.pid) - before_ns) / WINDOW_S / 1e9)
        if shares[-1] < IDLE_SHARE:
            break
    return min(shares)


@needs_linux
def test_a_server_that_has_answered_is_idle() -> None:
    """Pools that spin after each run keep a core busy: ours would be at 100 %.

    microsoft/onnxruntime #11841, #6895, #17011; headroomlabs-ai/headroom #2540;
    roboflow/rf-detr #1456.
    """
    with (
        start_server(LIMELIGHT_INTRA_OP_THREADS="2") as server,
        httpx.Client(base_url=server.url) as client,
    ):
        for weights in ("none", "per_head"):  # a session each
            ask(client, "v2-binary", draw_tokens(4, 200, 300), weights=weights)
        assert find_idle_share(server) < IDLE_SHARE
