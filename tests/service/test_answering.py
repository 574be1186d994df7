"""One request from body to answer, below HTTP."""

import asyncio
import json
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from model.reference import attend
from model.weights import Weights
from service.answering import answer_attention, answer_v2, encode
from service.engine.model import Model
from service.errors import InvalidRequestError, NotFoundError, ServiceError, UnavailableError
from service.state import State

QUERY = np.random.default_rng(12).standard_normal((2, 5, 6)).astype(np.float32)


def write_v2(**members: Any) -> bytes:
    entry = {"name": "query", "shape": [2, 5, 6], "datatype": "FP32", "data": QUERY.tolist()}
    return json.dumps({"inputs": [entry]} | members).encode()


def write_attention(**members: Any) -> bytes:
    return json.dumps({"query": QUERY.tolist()} | members).encode()


def count(state: State, outcome: str) -> float:
    name = f'limelight_requests_total{{model="demo",outcome="{outcome}",version="1"}}'
    for line in state.metrics.render().decode().splitlines():
        if line.startswith(name):
            return float(line.split()[-1])
    return 0


async def test_both_doors_give_the_same_bits(state: State, weights: Weights) -> None:
    model = state.repository.get("demo")
    _, first = await answer_v2(state, model, write_v2(), [])
    _, second = await answer_attention(state, write_attention(weights="per_head"), "json", {})
    output, attention = attend(weights, QUERY)
    assert first.tensors.keys() == second.tensors.keys() == {"output", "attention_weights"}
    for name, wanted in (("output", output), ("attention_weights", attention)):
        assert first.tensors[name].tobytes() == second.tensors[name].tobytes()
        np.testing.assert_allclose(first.tensors[name], wanted, atol=1e-6)
    assert (first.model, first.version, first.graph) == ("demo", "1", "fused_weights")
    assert first.compute_ms > 0


async def test_what_is_not_asked_for_is_not_computed(state: State) -> None:
    _, answer = await answer_attention(state, write_attention(), "json", {})
    assert answer.tensors.keys() == {"output"}
    assert answer.graph == "fused_bias"


async def test_a_large_body_has_the_same_answer(state: State) -> None:
    query = np.tile(QUERY, (1, 200, 1))
    body = json.dumps({"query": query.tolist()}).encode()
    asked, answer = await answer_attention(state, body, "json", {})
    assert len(body) > 65536
    assert asked.batched
    assert answer.tensors["output"].shape == (2, 1000, 6)


async def test_a_request_may_name_its_model(state: State) -> None:
    body = write_attention(model="demo", version="1")
    assert (await answer_attention(state, body, "json", {}))[1].version == "1"
    options = {"version": "1"}
    assert (await answer_attention(state, write_attention(), "json", options))[1].model == "demo"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"model": "layer"}, "model 'layer' is not served here; served: demo"),
        ({"version": "2"}, "model 'demo' has no version '2', expected one of 1"),
    ],
)
async def test_a_model_that_is_not_served_is_not_found(
    state: State, options: dict[str, str], said: str
) -> None:
    with pytest.raises(NotFoundError) as caught:
        await answer_attention(state, write_attention(), "json", options)
    assert str(caught.value) == said


async def test_a_refusal_is_counted(state: State) -> None:
    model = state.repository.get("demo")
    with pytest.raises(InvalidRequestError):
        await answer_v2(state, model, b"{}", [])
    with pytest.raises(InvalidRequestError):
        await answer_v2(state, model, write_v2(inputs=[]), [])
    with pytest.raises(InvalidRequestError):
        await answer_attention(state, write_attention(mask=[[1]]), "json", {})
    assert count(state, "400") == 3
    assert count(state, "ok") == 0


async def test_a_full_queue_is_counted(make_state: Callable[..., State], demo: Model) -> None:
    state = make_state(max_queue_requests=1)
    state.repository.add(demo)
    started, opened = threading.Event(), threading.Event()

    def hold() -> None:
        started.set()
        opened.wait(10)

    held = asyncio.create_task(state.scheduler.submit(hold, 1))
    await asyncio.to_thread(started.wait, 10)
    waiting = asyncio.create_task(answer_v2(state, demo, write_v2(), []))
    await asyncio.sleep(0)  # the task's first turn puts the job into the queue
    assert state.scheduler.waiting == 1
    with pytest.raises(UnavailableError):
        await answer_v2(state, demo, write_v2(), [])
    opened.set()
    await asyncio.gather(held, waiting)
    assert count(state, "503") == 1


async def test_a_request_is_ok_once_its_answer_is_written(state: State) -> None:
    _, answer = await answer_attention(state, write_attention(), "json", {})
    assert count(state, "ok") == 0
    assert await encode(state, answer, lambda: (b"text", {})) == (b"text", {})
    assert (count(state, "ok"), count(state, "400")) == (1, 0)


async def test_an_answer_that_cannot_be_written_is_no_success(state: State) -> None:
    _, answer = await answer_attention(state, write_attention(), "json", {})

    def refuse() -> tuple[bytes, dict[str, str]]:
        raise InvalidRequestError("holds NaN")

    with pytest.raises(InvalidRequestError):
        await encode(state, answer, refuse)
    assert (count(state, "ok"), count(state, "400")) == (0, 1)


async def test_a_request_refused_before_its_model_is_known_is_counted(state: State) -> None:
    with pytest.raises(InvalidRequestError):
        await answer_attention(state, b"{", "json", {})
    assert b'{model="",outcome="400",version=""} 1.0' in state.metrics.render()


async def test_a_fault_of_the_model_is_counted_as_one_of_ours(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = state.repository.get("demo")

    def fail(_: object) -> None:
        raise RuntimeError("onnxruntime failed")

    monkeypatch.setattr(model, "run", fail)
    with pytest.raises(RuntimeError, match=r"^onnxruntime failed$"):
        await answer_v2(state, model, write_v2(), [])
    assert count(state, str(ServiceError.status)) == 1


async def test_shapes_that_differ_from_what_was_sent_are_explained(state: State) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        await answer_attention(state, b'{"query": [[1, 2, 3]]}', "json", {})
    assert str(caught.value) == (
        "input 'query' has shape [1, 1, 3], expected [batch_size, query_length, 6] (shapes and "
        "positions count the batch axis of 1 that was added to your tensors)"
    )
