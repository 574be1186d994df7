"""Everything one application holds."""

import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from service.engine.directories import DEMO
from service.engine.model import Model
from service.engine.sizes import Limits
from service.errors import NotFoundError, StartError, UnavailableError
from service.state import OFFLOAD_BINARY_BYTES, OFFLOAD_TEXT_BYTES, State
from tests.service.engine.work import submit

MakeState = Callable[..., State]


def test_the_demo_is_loaded_and_counted(make_state: MakeState) -> None:
    state = make_state()
    state.load_models()
    assert state.repository.names == ["demo"]
    sample = b'limelight_model_info{model="demo",provider="cpu",version="1"} 1.0'
    assert sample in state.metrics.render()


def test_the_bounds_of_the_settings_reach_the_models(make_state: MakeState) -> None:
    state = make_state(max_batch_size=3, max_tokens=11, max_score_bytes=13, max_output_bytes=17)
    state.load_models()
    limits = state.repository.get("demo").limits
    assert limits == Limits(3, 11, 13, 17)


def test_a_default_model_that_is_not_served_stops_the_start(make_state: MakeState) -> None:
    with pytest.raises(StartError) as caught:
        make_state(default_model="layer").load_models()
    assert str(caught.value) == (
        "LIMELIGHT_DEFAULT_MODEL: model 'layer' is not served here; served: demo"
    )


def test_a_default_model_that_is_served_passes(make_state: MakeState) -> None:
    state = make_state(default_model="demo")
    state.load_models()
    assert state.repository.get_default().name == "demo"


@pytest.mark.parametrize("phase", ["starting", "failed", "stopping"])
def test_work_is_refused_unless_the_state_is_ready(make_state: MakeState, phase: Any) -> None:
    state = make_state()
    state.phase = phase
    with pytest.raises(UnavailableError) as caught:
        state.check_ready()
    assert str(caught.value) == f"the server is not ready: {phase}; try again later"


def test_work_is_taken_when_the_state_is_ready(state: State) -> None:
    state.check_ready()


def test_a_worker_takes_work_before_all_are_ready_and_does_not_say_so(state: State) -> None:
    state.hold = "starting"
    state.check_ready()
    with pytest.raises(UnavailableError) as caught:
        state.check_able()
    assert str(caught.value) == "the server is not ready: starting"
    state.hold = None
    state.check_able()


@pytest.mark.parametrize("version", [None, "1"])
def test_a_model_that_is_served_is_ready(state: State, version: str | None) -> None:
    state.check_model("demo", version)


def test_a_model_that_is_known_and_not_served_may_be_ready_later(
    make_state: MakeState, tmp_path: Path
) -> None:
    shutil.copytree(DEMO / "demo" / "1", tmp_path / "layer" / "3")
    (tmp_path / "layer" / "3" / "weights.bin").unlink()
    state = make_state(models=tmp_path, model_control="poll")
    state.load_models()
    state.phase = "ready"
    for version in (None, "3"):
        with pytest.raises(UnavailableError) as caught:
            state.check_model("layer", version)
        assert str(caught.value) == (
            "model 'layer' is not ready: it is UNAVAILABLE, weights.bin is missing"
        )
    for name, other in (("layer", "2"), ("other", None)):
        with pytest.raises(NotFoundError):
            state.check_model(name, other)


def test_a_default_model_may_come_later_where_models_may(
    make_state: MakeState, tmp_path: Path
) -> None:
    state = make_state(models=tmp_path, model_control="poll", default_model="layer")
    state.load_models()
    with pytest.raises(NotFoundError, match=r"^model 'layer' is not served here; served: none$"):
        state.repository.get_default()


async def test_small_work_stays_on_the_loop_and_large_work_leaves_it(state: State) -> None:
    here = threading.current_thread()
    assert await state.offload(threading.current_thread, OFFLOAD_TEXT_BYTES - 1) is here
    there = await state.offload(threading.current_thread, OFFLOAD_TEXT_BYTES)
    assert there.name.startswith("decode")


async def test_tensors_that_are_only_pointed_at_leave_the_loop_later(state: State) -> None:
    here = threading.current_thread()
    for size_bytes in (OFFLOAD_TEXT_BYTES, OFFLOAD_BINARY_BYTES - 1):
        found = await state.offload(threading.current_thread, size_bytes, 0)
        assert found is here
    there = await state.offload(threading.current_thread, OFFLOAD_BINARY_BYTES, 0)
    assert there.name.startswith("decode")


@pytest.mark.parametrize("size_bytes", [1, OFFLOAD_TEXT_BYTES])
async def test_an_error_of_the_work_is_raised_wherever_it_was_done(
    state: State, size_bytes: int
) -> None:
    def fail() -> None:
        raise ValueError("mine")

    with pytest.raises(ValueError, match=r"^mine$"):
        await state.offload(fail, size_bytes)


def test_memory_is_given_back_by_the_models_and_by_the_c_library(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    freed: list[object] = []
    monkeypatch.setattr(Model, "give_back", lambda model, _: freed.append(model))
    monkeypatch.setattr("service.state.free_memory", lambda: freed.append("the C library"))
    state.free_memory()
    assert freed == [*state.repository.models, "the C library"]


async def test_closing_ends_the_threads(make_state: MakeState) -> None:
    state = make_state()
    state.close()
    assert state.phase == "stopping"
    with pytest.raises(UnavailableError, match=r"^the server is stopping$"):
        await submit(state.scheduler, lambda: None)
