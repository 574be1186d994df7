"""One version of a model: what it accepts, how it waits, and when it is ready."""

import asyncio
import gc
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from model.contract import FUSED_BIAS
from model.reference import attend
from model.weights import Weights
from service.engine.model import Model
from service.engine.scheduler import Scheduler
from service.errors import InvalidRequestError
from service.inference import Inference, WantedWeights, WeightsForm
from tests.service.engine.stand_ins import B, D, H, L, Opener, S, StandIn, make_model, prepare
from tests.service.engine.work import ANY_TIME, PATIENCE_S

MakeScheduler = Callable[..., Scheduler]


def test_a_model_is_named_by_its_directories() -> None:
    model = make_model("cpu", Opener())
    assert (model.name, model.version, model.provider) == ("layer", "3", "cpu")


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_a_model_whose_first_answer_is_not_finite_is_not_ready(number: float) -> None:
    with pytest.raises(RuntimeError, match=r"^model 'layer' gave \(1, 2, 6\) at warm-up$"):
        make_model("cpu", Opener(number)).warm_up()


def test_a_warm_up_computes_one_answer() -> None:
    opener = Opener()
    make_model("cpu", opener).warm_up()
    (feeds,) = opener.sessions["fused_bias"].feeds
    assert (feeds["query"].shape, feeds["key"].shape) == ((1, 2, D), (1, 3, D))


def test_no_graph_is_opened_in_the_event_loop() -> None:
    """One with 64 MiB of weights takes 0.4 s, in which nobody was answered."""
    model = make_model("cpu", Opener())
    assert not model.lane.is_small(prepare(weights="mean"))
    model.run(prepare(weights="mean"))
    assert model.lane.is_small(prepare(weights="mean"))


def test_once_all_graphs_are_open_no_file_is_read() -> None:
    opener = Opener()
    model = make_model("cpu", opener)
    model.open_all()
    opened = list(opener.opened)
    for form in ("none", "per_head", "mean"):
        model.run(prepare(weights=form))
    assert opener.opened == opened
    assert model.open(FUSED_BIAS) is opener.sessions["fused_bias"]


def test_the_batch_size_of_its_config_bounds_a_request() -> None:
    model = make_model("cpu", Opener(), max_batch_size=3)
    assert model.limits.max_batch_size == 3
    asked = Inference({"query": np.zeros((4, L, D), np.float32)})
    with pytest.raises(InvalidRequestError, match=r"^batch size is 4, expected at most 3 \(max_b"):
        model.check(asked)


def test_its_config_says_how_its_requests_wait() -> None:
    lane = make_model("cpu", Opener(), max_queue_delay_us=700, instance_count=2).lane
    assert (lane.max_delay_us, lane.max_running) == (700, 2)
    plain = make_model("cpu", Opener()).lane
    assert (plain.max_delay_us, plain.max_running) == (0, None)


def test_where_the_batch_is_an_axis_like_any_other_nothing_is_joined() -> None:
    model = make_model("cpu", Opener(), max_batch_size=0, max_queue_delay_us=700)
    assert model.lane.max_delay_us == 0
    assert model.limits.max_batch_size == 256


def test_a_joined_run_is_bounded_as_a_request_is() -> None:
    assert make_model("cpu", Opener(), max_batch_size=9).lane.limit_rows(prepare()) == 9
    # 2**20 tokens, of which a row has half.
    long = prepare()
    long = type(long)(
        np.zeros((1, 2**18, D), np.float32), np.zeros((1, 2**18, D), np.float32),
        np.zeros((1, 2**18, D), np.float32), long.hiding, long.weights,
    )  # fmt: skip
    assert make_model("cpu", Opener()).lane.limit_rows(long) == 1


@pytest.mark.parametrize("weights_form", ["none", "per_head", "mean"])
def test_the_demo_answers_as_the_formula_says(
    demo: Model, weights: Weights, tokens: dict[str, Any], weights_form: WeightsForm
) -> None:
    generator = np.random.default_rng(8)
    hiding = {
        "mask": generator.random((B, 1, L, S)) < 0.7,
        "key_mask": generator.random((B, S)) < 0.7,
        "bias": generator.standard_normal((1, H, 1, S)).astype(np.float32),
    }
    asked = Inference(tokens | hiding, "bottom_right", WantedWeights(weights_form))
    computed = demo.run(demo.check(asked))
    output, attention = attend(
        weights, tokens["query"], tokens["key"], tokens["value"],
        mask=hiding["mask"], key_mask=hiding["key_mask"], bias=hiding["bias"],
        causal="bottom_right",
    )  # fmt: skip
    np.testing.assert_allclose(computed.tensors["output"], output, atol=1e-6)
    assert computed.graph == ("fused_bias" if weights_form == "none" else "fused_weights")
    if weights_form == "none":
        assert computed.tensors.keys() == {"output"}
    else:
        wanted = attention if weights_form == "per_head" else attention.mean(axis=1)
        np.testing.assert_allclose(computed.tensors["attention_weights"], wanted, atol=1e-6)


class Faulty(StandIn):
    """A session that cannot run more than one row."""

    def run(self, names: list[str], feeds: dict[str, Any], _: Any = None) -> list[Any]:
        if len(feeds["query"]) > 1:
            raise RuntimeError("out of memory")
        return super().run(names, feeds)


@pytest.mark.parametrize("delay_us", [0, 2000])
@pytest.mark.parametrize("rows", [(1, 1), (1, 2)])
async def test_a_model_that_is_dropped_frees_its_sessions_with_its_last_answer(
    make_scheduler: MakeScheduler, delay_us: int, rows: tuple[int, int]
) -> None:
    freed, scheduler = threading.Event(), make_scheduler(max_bytes=2**20)

    def open_faulty(path: Path) -> StandIn:
        session = Faulty(FUSED_BIAS)
        weakref.finalize(session, freed.set)
        return session

    async def ask() -> list[Any]:
        model = make_model("cpu", open_faulty, max_queue_delay_us=delay_us)
        jobs = [scheduler.submit(model.lane, prepare(rows=n), ANY_TIME) for n in rows]
        del model
        found = await asyncio.gather(*jobs, return_exceptions=True)
        return [type(each) for each in found]

    gc.disable()  # so that a circle of references would stay
    try:
        wanted = [each is RuntimeError for each in await ask()]
        assert wanted == [n > 1 for n in rows]
        assert await asyncio.to_thread(freed.wait, PATIENCE_S)
    finally:
        gc.enable()
