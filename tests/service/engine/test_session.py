"""onnxruntime: which one is installed, and where it really runs."""

import importlib.metadata
import logging
import os
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import pytest

from service.engine import session as sessions
from service.engine.cuda import CudaOptions
from service.engine.directories import DEMO
from service.engine.session import (
    CPU,
    CUDA,
    check_provider,
    choose_provider,
    load_runtime,
    make_shrinking_options,
    open_session,
)
from service.errors import DeviceMemoryError, StartError
from tests.service.engine.cuda_runtime import CudaRuntime

GRAPH = DEMO / "demo" / "1" / "fused_bias.onnx"


class StandIn:
    """A session that runs where a test says."""

    def __init__(self, *providers: str) -> None:
        self._providers = list(providers)

    def run(
        self, output_names: list[str], input_feed: dict[str, Any], run_options: Any = None
    ) -> list[Any]:
        raise NotImplementedError

    def get_providers(self) -> list[str]:
        return self._providers


def make_runtime(available: list[str], open_it: Callable[..., object]) -> ModuleType:
    """A module like onnxruntime, whose sessions `open_it` makes."""
    runtime = SimpleNamespace(
        get_available_providers=lambda: available,
        SessionOptions=lambda: SimpleNamespace(add_session_config_entry=lambda *_: None),
        InferenceSession=open_it,
    )
    return cast("ModuleType", runtime)


def install(monkeypatch: pytest.MonkeyPatch, *packages: str) -> None:
    """Let these packages alone be installed."""

    def version(name: str) -> str:
        if name not in packages:
            raise importlib.metadata.PackageNotFoundError(name)
        return "1.0"

    monkeypatch.setattr(importlib.metadata, "version", version)


def test_without_onnxruntime_the_start_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    install(monkeypatch)
    with pytest.raises(StartError) as caught:
        load_runtime()
    assert str(caught.value) == ("onnxruntime is not installed; install the extra 'cpu' or 'gpu'")


def test_with_both_the_start_says_what_to_remove(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, "onnxruntime", "onnxruntime-gpu")
    with pytest.raises(StartError) as caught:
        load_runtime()
    assert str(caught.value) == (
        "onnxruntime and onnxruntime-gpu are both installed and overwrite each other; "
        "uninstall both, then install one extra, 'cpu' or 'gpu'"
    )


@pytest.mark.parametrize("package", ["onnxruntime", "onnxruntime-gpu"])
def test_either_alone_is_loaded_without_telemetry(
    monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    install(monkeypatch, package)
    monkeypatch.delenv("ORT_DISABLE_TELEMETRY", raising=False)
    assert load_runtime().__name__ == "onnxruntime"
    assert os.environ["ORT_DISABLE_TELEMETRY"] == "1"


def test_a_session_runs_with_the_threads_it_is_told_and_does_not_spin() -> None:
    session = open_session(load_runtime(), GRAPH, "cpu", intra_op_threads=2)
    assert session.get_providers() == [CPU]
    options = cast("Any", session).get_session_options()
    assert (options.intra_op_num_threads, options.inter_op_num_threads) == (2, 1)
    assert options.get_session_config_entry("session.intra_op.allow_spinning") == "0"
    assert options.enable_mem_pattern is False


def test_a_run_can_be_told_to_keep_no_memory() -> None:
    options = make_shrinking_options(load_runtime())
    assert options.get_run_config_entry("memory.enable_memory_arena_shrinkage") == "cpu:0"


def test_a_file_that_onnxruntime_cannot_open_is_named(tmp_path: Path) -> None:
    path = tmp_path / "layer" / "3" / "model.onnx"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"no protobuf")
    with pytest.raises(StartError) as caught:
        open_session(load_runtime(), path, "cpu", 1)
    said = str(caught.value)
    assert said.startswith("model layer/3: model.onnx cannot be opened: ")
    assert "\n" not in said


@pytest.mark.parametrize(("provider", "first"), [("cpu", CPU), ("cuda", CUDA)])
def test_a_session_that_runs_where_it_was_told_passes(provider: Any, first: str) -> None:
    check_provider(StandIn(first, CPU), provider)


def test_a_silent_fall_back_to_the_cpu_is_found_out() -> None:
    """onnxruntime only warns."""
    with pytest.raises(StartError) as caught:
        check_provider(StandIn(CPU), "cuda")
    assert str(caught.value) == ("onnxruntime was asked for cuda, but runs on CPUExecutionProvider")


def test_on_cuda_a_session_has_the_options_of_the_settings_and_the_cpu_behind_it() -> None:
    runtime = CudaRuntime()
    options = CudaOptions(2, tf32=True, arena_bytes=7 * 2**20)
    session = open_session(cast("Any", runtime), GRAPH, "cuda", 1, cuda=options)
    assert session.get_providers() == [CUDA, CPU]
    assert runtime.sessions[0].options == options.to_provider_options()


def test_an_operator_without_a_kernel_on_cuda_is_found_out() -> None:
    """onnxruntime leaves it to the CPU without a word."""
    runtime = CudaRuntime(left=("Shape", "Attention"))
    with pytest.raises(StartError) as caught:
        open_session(cast("Any", runtime), GRAPH, "cuda", 1)
    assert str(caught.value) == (
        "onnxruntime 1.31.1 has no kernel on cuda for Attention in fused_bias.onnx, and would "
        "leave it to CPUExecutionProvider; install a newer onnxruntime-gpu"
    )


def test_shapes_may_be_computed_on_the_cpu() -> None:
    runtime = CudaRuntime(left=("Shape", "Concat"))
    open_session(cast("Any", runtime), GRAPH.with_name("model.onnx"), "cuda", 1)


def test_a_gpu_without_memory_for_a_graph_says_so() -> None:
    runtime = CudaRuntime()

    def open_it(*_: object, **__: object) -> None:
        raise RuntimeError("CUDA failure 2: out of memory ; GPU=0")

    runtime.InferenceSession = open_it  # type: ignore[method-assign, assignment]
    with pytest.raises(DeviceMemoryError, match=r"^the GPU has no memory left for this; try"):
        open_session(cast("Any", runtime), GRAPH, "cuda", 1)


@pytest.mark.parametrize("wish", ["auto", "cuda"])
def test_cuda_is_chosen_where_a_session_runs_on_it(
    monkeypatch: pytest.MonkeyPatch, wish: Any
) -> None:
    monkeypatch.setattr(sessions, "find_cuda_fault", lambda *_: None)
    runtime = CudaRuntime()
    cuda = CudaOptions(device=2)
    assert choose_provider(cast("Any", runtime), GRAPH, wish, 1, cuda) == "cuda"
    assert runtime.sessions[0].options["device_id"] == "2"


def test_cpu_is_chosen_without_a_look_at_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "find_cuda_fault", pytest.fail)
    assert choose_provider(make_runtime([CUDA, CPU], pytest.fail), GRAPH, "cpu", 1) == "cpu"


def test_an_onnxruntime_without_cuda_runs_on_the_cpu_and_says_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert choose_provider(make_runtime([CPU], pytest.fail), GRAPH, "auto", 1) == "cpu"
    assert caplog.records == []


def fall_back(*_: object, **__: object) -> StandIn:
    return StandIn(CPU)


def fail(*_: object, **__: object) -> StandIn:
    raise RuntimeError("CUDA failure 35")


FAULTS = {
    "a missing library": ("libcudnn is missing", pytest.fail, "libcudnn is missing"),
    "a silent fall back": (
        None, fall_back, "onnxruntime was asked for cuda, but runs on CPUExecutionProvider",
    ),
    "an error of onnxruntime": (
        None, fail, "model demo/1: fused_bias.onnx cannot be opened: CUDA failure 35",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("found", "open_it", "said"), FAULTS.values(), ids=FAULTS)
def test_where_cuda_does_not_run_auto_takes_the_cpu_and_cuda_refuses(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    found: str | None,
    open_it: Callable[..., object],
    said: str,
) -> None:
    monkeypatch.setattr(sessions, "find_cuda_fault", lambda *_: found)
    runtime = make_runtime([CUDA, CPU], open_it)
    with caplog.at_level(logging.WARNING, "limelight"):
        assert choose_provider(runtime, GRAPH, "auto", 1) == "cpu"
    assert caplog.messages == [f"running on the CPU: {said}"]
    with pytest.raises(StartError) as caught:
        choose_provider(runtime, GRAPH, "cuda", 1)
    assert str(caught.value) == (
        f"LIMELIGHT_PROVIDER is cuda, but {said}; mend that, or set LIMELIGHT_PROVIDER to cpu or "
        "auto"
    )
