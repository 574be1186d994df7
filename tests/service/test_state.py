"""Everything one application holds."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from service.engine.sizes import Limits
from service.errors import StartError, UnavailableError
from service.state import OFFLOAD_BYTES, State

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


async def test_small_work_stays_on_the_loop_and_large_work_leaves_it(state: State) -> None:
    here = threading.current_thread()
    assert await state.offload(threading.current_thread, OFFLOAD_BYTES - 1) is here
    there = await state.offload(threading.current_thread, OFFLOAD_BYTES)
    assert there.name.startswith("decode")


async def test_closing_ends_the_threads(make_state: MakeState) -> None:
    state = make_state()
    state.close()
    assert state.phase == "stopping"
    with pytest.raises(UnavailableError, match=r"^the server is stopping$"):
        await state.scheduler.submit(lambda: None, 1)
