"""Which changes of the models a server takes, and when."""

import asyncio
import re
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from service.engine.control import Control
from service.engine.directories import DEMO
from service.engine.loader import Loader
from service.errors import NotFoundError, NotOfferedError, StartError, UnavailableError
from service.model_control import MAX_WAITING
from service.state import State

PATIENCE_S = 10
MakeState = Callable[..., State]
CURES = {
    "none": "which loads models at start alone; start the server with explicit",
    "poll": "which follows the directory of models: put the model there or take it away, or start "
    "the server with explicit",
}


@pytest.fixture(name="root")
def make_root(tmp_path: Path) -> Path:
    """A repository of the models a, b and c; the weights of b are missing."""
    for name in ("a", "b", "c"):
        shutil.copytree(DEMO / "demo" / "1", tmp_path / name / "1")
    (tmp_path / "b" / "1" / "weights.bin").unlink()
    return tmp_path


def start(make_state: MakeState, root: Path, control: str, **changes: Any) -> State:
    state = make_state(models=root, model_control=control, **changes)
    state.load_models()
    return state


def test_without_control_a_broken_model_stops_the_start(make_state: MakeState, root: Path) -> None:
    with pytest.raises(StartError, match=r"^model b/1: weights\.bin is missing$"):
        start(make_state, root, "none")


def test_without_control_too_many_models_stop_the_start(make_state: MakeState, root: Path) -> None:
    text = "LIMELIGHT_MODELS holds 3 versions of models, expected at most 2 (LIMELIGHT_MAX_MODELS)"
    with pytest.raises(StartError, match=f"^{re.escape(text)}$"):
        start(make_state, root, "none", max_models=2)


@pytest.mark.parametrize("mode", ["explicit", "poll"])
def test_with_control_a_broken_model_leaves_the_others(
    make_state: MakeState, root: Path, mode: str
) -> None:
    assert start(make_state, root, mode).repository.names == ["a", "c"]


@pytest.mark.parametrize("mode", ["explicit", "poll"])
@pytest.mark.parametrize("folder", ["empty", "absent"])
def test_with_control_there_need_be_no_model(
    make_state: MakeState, tmp_path: Path, mode: str, folder: str
) -> None:
    (tmp_path / "empty").mkdir()
    state = start(make_state, tmp_path / folder, mode, default_model="later")
    assert state.repository.names == []


@pytest.mark.parametrize(
    ("wish", "names"), [("*", ["a", "c"]), ("-", []), ("c", ["c"]), ("b,a,x", ["a"])]
)
def test_the_settings_say_which_models_are_loaded_at_the_start(
    make_state: MakeState, root: Path, wish: str, names: list[str]
) -> None:
    assert start(make_state, root, "explicit", load_models=wish).repository.names == names


@pytest.mark.parametrize("mode", ["none", "explicit", "poll"])
def test_a_runtime_that_cannot_do_what_it_is_told_stops_the_start(
    make_state: MakeState, tmp_path: Path, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: Loader) -> None:
        raise StartError("LIMELIGHT_PROVIDER is cuda, but there is none")

    monkeypatch.setattr(Loader, "start", fail)
    with pytest.raises(StartError, match=r"^LIMELIGHT_PROVIDER is cuda"):
        start(make_state, tmp_path, mode)


@pytest.mark.parametrize("mode", ["none", "poll"])
async def test_where_nothing_is_loaded_on_request_the_setting_is_named(
    make_state: MakeState, mode: str
) -> None:
    state = make_state(model_control=mode)
    for change in (state.control.load, state.control.unload):
        with pytest.raises(NotOfferedError) as caught:
            await change("demo")
        assert str(caught.value) == (
            "models cannot be loaded or unloaded on request: LIMELIGHT_MODEL_CONTROL is "
            f"{mode}, {CURES[mode]}"
        )


@pytest.mark.parametrize("mode", ["none", "explicit", "poll"])
async def test_where_there_are_workers_nothing_is_loaded_on_request(
    make_state: MakeState, mode: str
) -> None:
    state = make_state(model_control=mode, workers=3)
    for change in (state.control.load, state.control.unload):
        with pytest.raises(NotOfferedError) as caught:
            await change("demo")
        assert str(caught.value) == (
            "models cannot be loaded or unloaded on request: LIMELIGHT_WORKERS is 3, and a request "
            "reaches one worker alone; set LIMELIGHT_MODEL_CONTROL to poll, so that each follows "
            "the directory of models, or start the server with one worker"
        )


async def test_models_are_loaded_and_unloaded_on_request(make_state: MakeState, root: Path) -> None:
    state = start(make_state, root, "explicit", load_models="-")
    await state.control.load("a")
    assert state.repository.names == ["a"]
    assert b'limelight_model_info{model="a",' in state.metrics.render()
    await state.control.unload("a")
    assert state.repository.names == []
    assert b'{model="a",' not in state.metrics.render()
    with pytest.raises(NotFoundError):
        await state.control.load("x")


@pytest.mark.parametrize(
    ("mode", "names"),
    [("none", {"demo"}), ("poll", {"a", "b", "c"}), ("explicit", {"a", "b", "c"})],
)
async def test_the_index_lists_what_the_mode_knows(
    make_state: MakeState, root: Path, mode: str, names: set[str]
) -> None:
    state = start(make_state, None if mode == "none" else root, mode, load_models="-")  # type: ignore[arg-type]
    assert {entry.name for entry in await state.control.list_entries()} == names


async def test_a_scan_follows_the_directory(make_state: MakeState, root: Path) -> None:
    state = start(make_state, root, "poll")
    shutil.rmtree(root / "a")
    await state.control.scan()
    assert state.repository.names == ["c"]


async def test_changes_wait_for_each_other_beside_the_loop_and_not_without_bound(
    make_state: MakeState, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = start(make_state, root, "explicit", load_models="-")
    may_end, running, threads = threading.Event(), [0], set[str]()

    def hold(_: Control, name: str) -> None:
        running[0] += 1
        assert running[0] == 1
        threads.add(threading.current_thread().name)
        may_end.wait(PATIENCE_S)
        running[0] -= 1

    monkeypatch.setattr(Control, "load", hold)
    changes = [asyncio.create_task(state.control.load("a")) for _ in range(MAX_WAITING)]
    await asyncio.sleep(0)
    with pytest.raises(UnavailableError) as caught:
        await state.control.load("a")
    assert str(caught.value) == (
        "16 changes of models are waiting already, expected fewer than 16; try again later"
    )
    may_end.set()
    await asyncio.wait_for(asyncio.gather(*changes), PATIENCE_S)
    await state.control.load("a")
    assert threads == {"control_0"}


async def test_at_the_end_what_runs_is_finished_and_what_waits_is_not_begun(
    make_state: MakeState, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = start(make_state, root, "explicit", load_models="-")
    has_begun, may_end, ended = threading.Event(), threading.Event(), list[str]()

    def hold(_: Control, name: str) -> None:
        has_begun.set()
        may_end.wait(PATIENCE_S)
        ended.append(name)

    monkeypatch.setattr(Control, "load", hold)
    changes = [asyncio.create_task(state.control.load(name)) for name in ("a", "c")]
    await asyncio.to_thread(has_begun.wait, PATIENCE_S)
    closing = asyncio.create_task(asyncio.to_thread(state.control.close))
    await asyncio.sleep(0.01)
    may_end.set()
    await closing
    done, _ = await asyncio.wait(changes, timeout=PATIENCE_S)
    assert ended == ["a"]
    assert [task.cancelled() for task in changes] == [False, True]
    assert len(done) == len(changes)
