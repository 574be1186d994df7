"""A model on CUDA, from requests to answers; a stand-in computes on the CPU what CUDA would."""

import asyncio
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from model.contract import Causal
from model.reference import attend
from model.weights import Weights
from service.engine.cuda import CudaOptions
from service.engine.directories import DEMO
from service.engine.lane import go_on
from service.engine.loader import Loader
from service.engine.model import Model
from service.engine.scheduler import Scheduler
from service.engine.sizes import Limits
from service.errors import DeviceMemoryError
from service.inference import NO_WEIGHTS, Inference, Schedule, WantedWeights, WeightsForm
from tests.service.engine.cuda_runtime import CudaRuntime

D, H = 6, 3
TOLERANCE = 1e-5
ANY_TIME = Schedule()
DELAY_US = 20_000
MakeModel = Callable[..., Model]


@pytest.fixture(name="runtime")
def put_runtime(monkeypatch: pytest.MonkeyPatch) -> CudaRuntime:
    runtime = CudaRuntime()
    monkeypatch.setattr("service.engine.loader.load_runtime", lambda: runtime)
    monkeypatch.setattr("service.engine.session.find_cuda_fault", lambda *_: None)
    # The heads of the demo are 2 wide, for which CUDA has no kernel without scores.
    monkeypatch.setattr("service.engine.model.KERNEL_WIDTHS", 2)
    return runtime


@pytest.fixture(name="load")
def make_loader(runtime: CudaRuntime, limits: Limits) -> MakeModel:
    def load(**options: Any) -> Model:
        return Loader("cuda", 1, limits, CudaOptions(**options)).load(DEMO / "demo" / "1")

    return load


@pytest.fixture(name="model")
def load_model(load: MakeModel) -> Model:
    return load()


def draw(rows: int, length: int, seed: int = 0) -> Any:
    return np.random.default_rng((rows, length, seed)).standard_normal(
        (rows, length, D), np.float32
    )


def check(model: Model, tensors: dict[str, Any], causal: Causal, weights: WantedWeights) -> Any:
    return model.check(Inference(tensors, causal, weights))


def expect(weights: Weights, tensors: dict[str, Any], causal: Causal) -> tuple[Any, Any]:
    query = tensors["query"]
    key = tensors.get("key", query)
    value = tensors.get("value", key)
    hiding = {name: tensors[name] for name in ("mask", "key_mask", "bias") if name in tensors}
    return attend(weights, query, key, value, causal=causal, **hiding)


@st.composite
def requests(draw_from: st.DrawFn) -> tuple[list[dict[str, Any]], Causal, WantedWeights]:
    """Requests of unlike lengths and hidings, and what all of them ask for."""
    form: WeightsForm = draw_from(st.sampled_from(["none", "per_head", "mean"]))
    causal: Causal = draw_from(st.sampled_from([False, "top_left", "bottom_right"]))
    asked = []
    for number in range(draw_from(st.integers(1, 4))):
        rows, length = draw_from(st.integers(1, 3)), draw_from(st.integers(1, 20))
        keys = draw_from(st.sampled_from([length, draw_from(st.integers(1, 20))]))
        tensors: dict[str, Any] = {"query": draw(rows, length, number)}
        if keys != length or draw_from(st.booleans()):
            tensors |= {"key": draw(rows, keys, number + 9), "value": draw(rows, keys, number + 99)}
        match draw_from(st.sampled_from(["nothing", "lengths", "key_mask", "mask", "bias"])):
            case "lengths":
                lengths = np.array([draw_from(st.integers(1, keys)) for _ in range(rows)])
                tensors["key_mask"] = np.arange(keys) < lengths[:, None]
            case "key_mask":
                tensors["key_mask"] = draw_from(arrays.arrays(bool, (rows, keys)))
            case "mask":
                shape = (rows, 1, draw_from(st.sampled_from([1, length])), keys)
                tensors["mask"] = draw_from(arrays.arrays(bool, shape))
            case "bias":
                heads = draw_from(st.sampled_from([1, H]))
                elements = st.sampled_from([0.0, 1.5, -2.25, -np.inf])
                shape = (1, heads, length, keys)
                tensors["bias"] = draw_from(arrays.arrays(np.float32, shape, elements=elements))
        asked.append(tensors)
    return asked, causal, WantedWeights(form)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(asked=requests())
def test_joined_answers_are_those_of_the_formula(
    model: Model, weights: Weights, asked: Any
) -> None:
    tensors, causal, wanted = asked
    groups: dict[Any, list[int]] = {}
    prepared = [check(model, each, causal, wanted) for each in tensors]
    for number, each in enumerate(prepared):
        groups.setdefault(model.lane.join_key(each), []).append(number)
    for numbers in groups.values():
        found = model.lane.run([prepared[number] for number in numbers], go_on)
        for number, computed in zip(numbers, found, strict=True):
            output, scores = expect(weights, tensors[number], causal)
            np.testing.assert_allclose(computed.tensors["output"], output, rtol=0, atol=TOLERANCE)
            if wanted.form != "none":
                right = scores if wanted.form == "per_head" else scores.mean(1)
                answer = computed.tensors["attention_weights"]
                np.testing.assert_allclose(answer, right, rtol=0, atol=TOLERANCE)


def test_each_request_gets_the_graph_that_takes_least(load: MakeModel) -> None:
    model = load()
    tokens = {"query": draw(2, 5)}
    lengths = {"key_mask": np.arange(5) < np.array([[5], [2]])}
    graphs = {
        "fused": check(model, tokens | lengths, False, NO_WEIGHTS),
        "fused_causal": check(model, tokens, "bottom_right", NO_WEIGHTS),
        "fused_bias": check(model, tokens | lengths, "top_left", NO_WEIGHTS),
        "model": check(model, tokens, False, WantedWeights("mean")),
    }
    assert [model.run(prepared).graph for prepared in graphs.values()] == list(graphs)


def test_tokens_of_a_request_cross_once_and_keys_by_eights(
    load: MakeModel, runtime: CudaRuntime
) -> None:
    model = load(device=1)
    warm_up = runtime.sessions[-1]
    warm_up.inputs.clear()
    model.run(check(model, {"query": draw(2, 5)}, False, NO_WEIGHTS))
    assert [(each.names, each.size_bytes) for each in warm_up.inputs] == [
        (["query", "key", "value"], 4 * 2 * 8 * D),
        (["key_lengths"], 8 * 2),
    ]
    assert runtime.values == [("cuda", 1)]


def test_a_padding_that_holds_no_numbers_changes_nothing(load: MakeModel, weights: Weights) -> None:
    model = load()
    tensors = {"query": draw(2, 5), "key": draw(2, 7, 1), "value": draw(2, 7, 2)}
    tensors["key_mask"] = np.arange(7) < np.array([[4], [6]])
    right, _ = expect(weights, tensors, False)
    dirty = {**tensors, "key": tensors["key"].copy(), "value": tensors["value"].copy()}
    for name in ("key", "value"):
        dirty[name][~tensors["key_mask"]] = np.nan
    output = model.run(check(model, dirty, False, NO_WEIGHTS)).tensors["output"]
    np.testing.assert_allclose(output, right, rtol=0, atol=TOLERANCE)


async def test_requests_of_unlike_lengths_run_together_and_unlike_parameters_apart(
    load: MakeModel, runtime: CudaRuntime, weights: Weights
) -> None:
    model = load(join_delay_us=DELAY_US)
    runtime.sessions[-1].outputs.clear()
    scheduler = Scheduler(1, 100, 2**20)
    scheduler.start()
    tensors = [{"query": draw(rows, length)} for rows, length in ((2, 5), (1, 11), (3, 7))]
    asked: list[tuple[dict[str, Any], Causal]] = [(each, False) for each in tensors]
    asked.append((tensors[0], "top_left"))
    try:
        timed = await asyncio.gather(
            *(
                scheduler.submit(model.lane, check(model, each, causal, NO_WEIGHTS), ANY_TIME)
                for each, causal in asked
            )
        )
    finally:
        scheduler.close()
    assert [each.result.executed_rows for each in timed] == [6, 0, 0, 2]
    assert [each.result.graph for each in timed] == ["fused"] * 3 + ["fused_causal"]
    for (each, causal), answered in zip(asked, timed, strict=True):
        right, _ = expect(weights, each, causal)
        np.testing.assert_allclose(answered.result.tensors["output"], right, atol=TOLERANCE)


def test_a_run_of_several_has_no_more_tokens_than_the_setting_says(load: MakeModel) -> None:
    model = load(join_tokens=1000)
    # Padded to 64 queries and 128 keys at most.
    asked = check(model, {"query": draw(1, 9), "key": draw(1, 70, 1)}, False, NO_WEIGHTS)
    assert model.lane.limit_rows(asked) == 1000 // (64 + 128)
    assert load(join_tokens=0).lane.limit_rows(asked) == 1
    assert model.lane.max_delay_us == 200


@pytest.mark.parametrize(("long", "runs"), [("causal", 1), ("lengths", 1), ("mask", 4)])
def test_a_long_request_is_computed_at_once_where_nothing_holds_its_scores(
    load: MakeModel, runtime: CudaRuntime, monkeypatch: pytest.MonkeyPatch, weights: Weights,
    long: str, runs: int,
) -> None:  # fmt: skip
    monkeypatch.setattr("service.engine.slices.WHOLE_SCORE_BYTES", 4 * H * 40 * 10)
    monkeypatch.setattr("service.engine.slices.SLICE_SCORE_BYTES", 4 * H * 40 * 10)
    model, tensors = load(), {"query": draw(1, 39)}
    if long == "mask":
        tensors["mask"] = np.random.default_rng(1).random((1, 1, 39, 39)) < 0.7
    causal: Causal = "top_left" if long == "causal" else False
    prepared = check(model, tensors, causal, NO_WEIGHTS)
    assert prepared.slices is not None
    computed = model.run(prepared)
    assert len(runtime.sessions[-1].outputs) - (long == "lengths") == runs
    right, _ = expect(weights, tensors, causal)
    np.testing.assert_allclose(computed.tensors["output"], right, rtol=0, atol=TOLERANCE)


def test_heads_without_a_kernel_are_causal_by_a_bias_and_computed_in_slices(
    load: MakeModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("service.engine.model.KERNEL_WIDTHS", 8)
    model = load()
    assert (
        model.run(check(model, {"query": draw(1, 9)}, "top_left", NO_WEIGHTS)).graph == "fused_bias"
    )


async def test_the_request_that_is_too_large_is_refused_alone(
    load: MakeModel, runtime: CudaRuntime, weights: Weights
) -> None:
    """The run that holds it fails, and each of its requests is run again by itself."""
    model = load(join_delay_us=DELAY_US)
    session = runtime.sessions[-1]
    compute = session.run_with_iobinding

    def run_out(binding: Any, run_options: Any = None) -> None:
        if session.inputs[-2].size_bytes > 4 * 24 * D:
            raise RuntimeError(
                "bfc_arena.cc Available memory of 9 is smaller than requested bytes of 88"
            )
        compute(binding, run_options)

    session.run_with_iobinding = run_out  # type: ignore[method-assign]
    scheduler = Scheduler(2, 100, 2**20)
    scheduler.start()
    tensors = [{"query": draw(1, length)} for length in (5, 50, 17)]
    try:
        found = await asyncio.gather(
            *(
                scheduler.submit(model.lane, check(model, each, False, NO_WEIGHTS), ANY_TIME)
                for each in tensors
            ),
            return_exceptions=True,
        )
    finally:
        scheduler.close()
    assert isinstance(found[1], DeviceMemoryError)
    assert "88 bytes more were wanted" in str(found[1])
    for number in (0, 2):
        right, _ = expect(weights, tensors[number], False)
        answered: Any = found[number]
        np.testing.assert_allclose(answered.result.tensors["output"], right, atol=TOLERANCE)
