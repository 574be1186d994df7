"""One request from body to answer, below HTTP."""

import asyncio
import json
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from model.reference import attend
from model.weights import Weights
from service.answering import Encoded, answer_attention, answer_v2, encode
from service.engine.lane import Lane
from service.engine.model import Model
from service.errors import InvalidRequestError, NotFoundError, ServiceError, UnavailableError
from service.inference import Schedule
from service.state import State
from service.statistics import ModelCounts

PATIENCE_S = 10
QUERY = np.random.default_rng(12).standard_normal((2, 5, 6)).astype(np.float32)


def write_v2(**members: Any) -> bytes:
    entry = {"name": "query", "shape": [2, 5, 6], "datatype": "FP32", "data": QUERY.tolist()}
    return json.dumps({"inputs": [entry]} | members).encode()


def write_attention(**members: Any) -> bytes:
    return json.dumps({"query": QUERY.tolist()} | members).encode()


@dataclass(frozen=True)
class Load:
    """What occupies a thread."""

    rows: int = 1
    size_bytes: int = 1


class Gate:
    """A run that ends when it is told to."""

    def __init__(self) -> None:
        self.started = threading.Event()
        self.opened = threading.Event()

    def run(self, loads: Sequence[Load], _: Callable[[], None]) -> Sequence[Load]:
        self.started.set()
        assert self.opened.wait(PATIENCE_S)
        return loads


async def occupy(state: State, gate: Gate) -> asyncio.Task[Any]:
    """Let the only thread wait at a gate."""
    held = asyncio.create_task(state.scheduler.submit(Lane(gate.run), Load(), Schedule()))
    await asyncio.to_thread(gate.started.wait, PATIENCE_S)
    return held


def read(state: State) -> ModelCounts:
    """What has been counted of the demo."""
    return state.statistics.read("demo", "1")


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
    assert count(state, "400") == read(state).failures["OTHER"] == 3
    assert count(state, "ok") == read(state).success_count == 0
    assert read(state).fail_ns > 0


async def test_a_full_queue_is_counted(make_state: Callable[..., State], demo: Model) -> None:
    state, gate = make_state(max_queue_requests=1), Gate()
    state.repository.add(demo)
    state.metrics.count_model(demo)
    held = await occupy(state, gate)
    waiting = asyncio.create_task(answer_v2(state, demo, write_v2(), []))
    await asyncio.sleep(0)  # the task's first turn puts the job into the queue
    assert state.scheduler.waiting == demo.lane.waiting == 1
    assert b'nv_inference_pending_request_count{model="demo",version="1"} 1' in (
        state.metrics.render()
    )
    with pytest.raises(UnavailableError):
        await answer_v2(state, demo, write_v2(), [])
    gate.opened.set()
    await asyncio.gather(held, waiting)
    assert count(state, "503") == 1
    assert read(state).failures["REJECTED"] == read(state).fail_count == 1


async def test_a_request_waits_as_it_asked_to(state: State) -> None:
    gate, demo = Gate(), state.repository.get("demo")
    held = await occupy(state, gate)
    late = write_v2(parameters={"timeout": 1000})
    with pytest.raises(UnavailableError, match=r"longer than the 1000 microseconds that "):
        await answer_v2(state, demo, late, [])
    gate.opened.set()
    await held
    assert read(state).failures["REJECTED"] == 1
    assert read(state).execution_count == 0


@pytest.mark.parametrize("door", ["v2", "v1"])
async def test_a_client_that_leaves_while_it_waits_is_counted(state: State, door: str) -> None:
    gate = Gate()
    held = await occupy(state, gate)
    answer = (
        answer_v2(state, state.repository.get("demo"), write_v2(), [])
        if door == "v2"
        else answer_attention(state, write_attention(), "json", {})
    )
    waiting = asyncio.create_task(answer)
    await asyncio.sleep(0)  # the task's first turn puts the job into the queue
    assert state.scheduler.waiting == 1
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    gate.opened.set()
    await held
    assert count(state, "left") == 1
    assert read(state).failures["CANCELED"] == read(state).fail_count == 1


async def test_a_client_that_leaves_while_its_body_is_decoded_is_counted_once(
    state: State,
) -> None:
    body = json.dumps({"inputs": [], "large": "x" * 65536}).encode()  # would be refused
    demo = state.repository.get("demo")
    decoding = asyncio.create_task(answer_v2(state, demo, body, []))
    await asyncio.sleep(0)
    decoding.cancel()
    with pytest.raises(asyncio.CancelledError):
        await decoding
    assert read(state).failures == {"REJECTED": 0, "CANCELED": 1, "BACKEND": 0, "OTHER": 0}
    assert (count(state, "left"), count(state, "400")) == (1, 0)


@pytest.mark.parametrize("door", ["v2", "v1"])
async def test_an_answer_is_counted_with_its_times(state: State, door: str) -> None:
    before_ns = time.perf_counter_ns()
    answer = (
        await answer_v2(state, state.repository.get("demo"), write_v2(), [])
        if door == "v2"
        else await answer_attention(state, write_attention(), "json", {})
    )[1]
    await encode(state, answer, lambda: ((b"text",), {}))
    wall_ns = time.perf_counter_ns() - before_ns
    counts, times = read(state), answer.times
    assert (counts.inference_count, counts.execution_count, counts.success_count) == (2, 1, 1)
    assert counts.batches.keys() == {2}
    assert counts.queue_ns == times.queue_ns > 0
    assert counts.input_ns == counts.batches[2].input_ns == times.input_ns > 0
    assert counts.infer_ns == counts.batches[2].infer_ns == times.infer_ns > 0
    assert counts.output_ns == counts.batches[2].output_ns == times.output_ns > 0
    parts_ns = times.queue_ns + times.input_ns + times.infer_ns + times.output_ns
    assert parts_ns < counts.success_ns <= wall_ns
    assert counts.fail_count == 0


async def test_a_request_is_ok_once_its_answer_is_written(state: State) -> None:
    _, answer = await answer_attention(state, write_attention(), "json", {})
    assert count(state, "ok") == 0
    assert await encode(state, answer, lambda: ((b"text",), {})) == ((b"text",), {})
    assert (count(state, "ok"), count(state, "400")) == (1, 0)


async def test_an_answer_that_cannot_be_written_is_no_success(state: State) -> None:
    _, answer = await answer_attention(state, write_attention(), "json", {})

    def refuse() -> Encoded:
        raise InvalidRequestError("holds NaN")

    with pytest.raises(InvalidRequestError):
        await encode(state, answer, refuse)
    assert (count(state, "ok"), count(state, "400")) == (0, 1)
    counts = read(state)
    assert (counts.success_count, counts.failures["OTHER"]) == (0, 1)
    assert (counts.inference_count, counts.execution_count) == (0, 1)


async def test_a_request_refused_before_its_model_is_known_is_counted(state: State) -> None:
    with pytest.raises(InvalidRequestError):
        await answer_attention(state, b"{", "json", {})
    assert b'{model="",outcome="400",version=""} 1.0' in state.metrics.render()
    assert read(state).fail_count == 0


async def test_a_fault_of_the_model_is_counted_as_one_of_ours(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = state.repository.get("demo")

    def fail(*_: object) -> None:
        raise RuntimeError("onnxruntime failed")

    monkeypatch.setattr(model.lane, "run", fail)
    with pytest.raises(RuntimeError, match=r"^onnxruntime failed$"):
        await answer_v2(state, model, write_v2(), [])
    assert count(state, str(ServiceError.status)) == read(state).failures["BACKEND"] == 1


async def test_shapes_that_differ_from_what_was_sent_are_explained(state: State) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        await answer_attention(state, b'{"query": [[1, 2, 3]]}', "json", {})
    assert str(caught.value) == (
        "input 'query' has shape [1, 1, 3], expected [batch_size, query_length, 6] (shapes and "
        "positions count the batch axis of 1 that was added to your tensors)"
    )


@pytest.mark.parametrize("door", ["v2", "v1"])
async def test_json_is_nested_no_deeper_than_the_setting_says(
    make_state: Callable[..., State], door: str
) -> None:
    def nest(depth: int) -> Any:
        return json.loads("[" * depth + "]" * depth)

    async def ask(depth: int) -> None:
        if door == "v2":
            await answer_v2(state, state.repository.get("demo"), write_v2(mine=nest(depth)), [])
        else:
            await answer_attention(state, write_attention(mask=nest(depth)), "json", {})

    state = make_state(max_json_depth=9)
    state.load_models()
    state.phase = "ready"
    with suppress(InvalidRequestError):  # a mask of nothing
        await ask(8)
    with pytest.raises(InvalidRequestError, match=r"at most 9 lists and objects .*MAX_JSON_DEPTH"):
        await ask(9)
