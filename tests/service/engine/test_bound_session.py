"""What crosses between host and GPU; a stand-in notes it and computes on the CPU."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnxruntime
import pytest

from model.reference import attend
from model.weights import Weights
from service.engine.bound_session import BoundSession
from service.engine.cuda import CudaOptions
from service.engine.directories import DEMO
from service.engine.session import open_session
from service.errors import DeviceMemoryError
from tests.service.engine.cuda_runtime import CudaRuntime, CudaSession

B, L, S, D, H = 2, 4, 5, 6, 3
Open = Callable[[str], tuple[BoundSession, CudaSession]]


@pytest.fixture
def runtime() -> CudaRuntime:
    return CudaRuntime()


@pytest.fixture
def open_graph(runtime: CudaRuntime) -> Open:
    def open_it(name: str) -> tuple[BoundSession, CudaSession]:
        path: Path = DEMO / "demo" / "1" / f"{name}.onnx"
        session = open_session(cast("Any", runtime), path, "cuda", 1, cuda=CudaOptions(device=3))
        return cast("BoundSession", session), runtime.sessions[-1]

    return open_it


def draw(*shape: int) -> Any:
    return np.random.default_rng(shape).standard_normal(shape, np.float32)


def test_every_input_and_output_crosses_once(open_graph: Open, weights: Weights) -> None:
    session, noted = open_graph("model")
    tokens = {"query": draw(B, L, D), "key": draw(B, S, D), "value": draw(B, S, D) + 1}
    bias = draw(1, H, L, S)
    output, found = session.run(["output", "attention_weights"], {**tokens, "bias": bias})
    crossed = [(each.names, each.size_bytes, each.way) for each in noted.inputs]
    assert crossed == [
        (["query"], 4 * B * L * D, "bind_cpu_input"),
        (["key"], 4 * B * S * D, "bind_cpu_input"),
        (["value"], 4 * B * S * D, "bind_cpu_input"),
        (["bias"], 4 * H * L * S, "bind_cpu_input"),
    ]
    came = [(each.names, each.size_bytes) for each in noted.outputs]
    assert came == [(["output"], 4 * B * L * D), (["attention_weights"], 4 * B * H * L * S)]
    for right, answer in zip(attend(weights, **tokens, bias=bias), (output, found), strict=True):
        np.testing.assert_allclose(answer, right, rtol=0, atol=1e-5)


def test_what_is_not_asked_for_does_not_come_back(open_graph: Open) -> None:
    session, noted = open_graph("model")
    tokens = {name: draw(B, S, D) for name in ("query", "key", "value")}
    (output,) = session.run(["output"], {**tokens, "bias": draw(B, 1, S, S)})
    assert output.shape == (B, S, D)
    assert [each.names for each in noted.outputs] == [["output"]]


def test_an_array_that_stands_for_all_three_crosses_once(
    open_graph: Open, runtime: CudaRuntime, weights: Weights
) -> None:
    session, noted = open_graph("fused")
    tokens, lengths = draw(B, L, D), np.array([4, 2])
    feeds = {"query": tokens, "key": tokens, "value": tokens, "key_lengths": lengths}
    (output,) = session.run(["output"], feeds)
    assert [(each.names, each.size_bytes) for each in noted.inputs] == [
        (["query", "key", "value"], 4 * B * L * D),
        (["key_lengths"], 8 * B),
    ]
    assert runtime.values == [("cuda", 3)]
    key_mask = np.arange(L) < lengths[:, None]
    right, _ = attend(weights, tokens, tokens, tokens, key_mask=key_mask)
    np.testing.assert_allclose(output, right, rtol=0, atol=1e-5)


def test_a_session_on_cuda_says_so(open_graph: Open) -> None:
    session, noted = open_graph("fused_causal")
    assert session.get_providers() == ["CUDAExecutionProvider", "CPUExecutionProvider"]
    assert noted.options["device_id"] == "3"


def test_other_errors_are_those_of_onnxruntime(open_graph: Open) -> None:
    session, noted = open_graph("fused_causal")
    noted.fault = RuntimeError("CUDA failure 700: an illegal memory access was encountered")
    tokens = draw(B, L, D)
    with pytest.raises(RuntimeError, match="CUDA failure 700"):
        session.run(["output"], {"query": tokens, "key": tokens, "value": tokens})


@pytest.fixture(name="small_arena", scope="module")
def make_small_arena() -> Any:
    """Options of sessions whose arena, of the class that CUDA's is too, has no more than 4 MiB."""
    place = onnxruntime.OrtMemoryInfo(
        "Cpu", onnxruntime.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, onnxruntime.OrtMemType.DEFAULT
    )
    bounds = {"max_mem": 4 * 2**20, "arena_extend_strategy": 1, "initial_chunk_size_bytes": 2**20}
    onnxruntime.create_and_register_allocator(place, onnxruntime.OrtArenaCfg(bounds))
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.use_env_allocators", "1")
    options.log_severity_level = 4
    return options


def test_a_request_that_an_arena_has_no_room_for_is_refused_and_smaller_ones_go_on(
    small_arena: Any, runtime: CudaRuntime, weights: Weights
) -> None:
    path = DEMO / "demo" / "1" / "fused.onnx"
    real = onnxruntime.InferenceSession(path, small_arena, providers=["CPUExecutionProvider"])
    noted = CudaSession(real, ["CUDAExecutionProvider"], {})
    session = BoundSession(cast("Any", runtime), noted, 0)

    def ask(length: int) -> tuple[Any, Any]:
        tokens = draw(1, length, D)
        feeds = {"query": tokens, "key": tokens, "value": tokens, "key_lengths": np.array([length])}
        return tokens, session.run(["output"], feeds)[0]

    ask(7)
    with pytest.raises(DeviceMemoryError) as caught:
        ask(2000)
    assert str(caught.value) == (
        "the GPU has no memory left for this: 48000000 bytes more were wanted; try again later, "
        "send fewer or shorter sequences, or raise LIMELIGHT_CUDA_ARENA_BYTES where it is set"
    )
    assert (caught.value.status, caught.value.headers["Retry-After"]) == (503, "1")
    assert caught.value.__context__ is None, "its traceback would keep the tensors"
    tokens, output = ask(9)
    np.testing.assert_allclose(output, attend(weights, tokens, tokens, tokens)[0], atol=1e-5)
