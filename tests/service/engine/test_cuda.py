"""What CUDA needs, found out before onnxruntime fails; a stand-in is the driver."""

from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import cast

import pytest

from service.engine.cuda import CudaOptions, describe_device, find_cuda_fault
from tests.service.engine.libcuda import NO_DEVICE, Libcuda, install

BOTH = ["CUDAExecutionProvider", "CPUExecutionProvider"]
NEEDED = "needed 580 or newer, as onnxruntime is built for CUDA 13.0"


def make_runtime(
    available: list[str], preload: Callable[[], None] = lambda: None, cuda_version: str = "13.0"
) -> ModuleType:
    runtime = SimpleNamespace(
        get_available_providers=lambda: available, preload_dlls=preload, cuda_version=cuda_version
    )
    return cast("ModuleType", runtime)


def test_a_session_computes_in_full_precision_on_the_first_gpu() -> None:
    assert CudaOptions().to_provider_options() == {
        "device_id": "0",
        "use_tf32": "0",
        "arena_extend_strategy": "kSameAsRequested",
    }


def test_gpu_precision_and_memory_are_the_settings() -> None:
    assert CudaOptions(3, tf32=True, arena_bytes=5 * 2**20).to_provider_options() == {
        "device_id": "3",
        "use_tf32": "1",
        "arena_extend_strategy": "kSameAsRequested",
        "gpu_mem_limit": "5242880",
    }


def test_an_onnxruntime_without_cuda_is_named() -> None:
    assert find_cuda_fault(make_runtime(BOTH[1:])) == (
        "this onnxruntime has no CUDA (install the extra 'gpu' instead of 'cpu')"
    )


DRIVERS = {
    "none": (None, None, f"the NVIDIA driver is missing (libcuda.so.1): found none, {NEEDED}"),
    "a module that the container does not see the library of": (
        None, "570.86.15",
        f"the NVIDIA driver is missing (libcuda.so.1): found 570.86.15 in the kernel alone, "
        f"{NEEDED}",
    ),
    "one that is too old": (
        Libcuda(12080), "570.86.15",
        f"the NVIDIA driver is too old: found 570.86.15 (CUDA 12.8), {NEEDED}",
    ),
    "one without a GPU": (
        Libcuda(init=NO_DEVICE), "580.65.06",
        "the NVIDIA driver does not work (cuInit: no CUDA-capable device is detected): found "
        f"580.65.06 (CUDA 13.0), {NEEDED}",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("library", "module", "said"), DRIVERS.values(), ids=DRIVERS)
def test_the_driver_that_was_found_and_the_one_that_is_needed_are_named(
    monkeypatch: pytest.MonkeyPatch, library: Libcuda | None, module: str | None, said: str
) -> None:
    install(monkeypatch, library, module)
    assert find_cuda_fault(make_runtime(BOTH)) == said


def test_cuda_12_needs_an_older_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, Libcuda(11080), "520.61.05")
    assert find_cuda_fault(make_runtime(BOTH, cuda_version="12.8")) == (
        "the NVIDIA driver is too old: found 520.61.05 (CUDA 11.8), needed 525 or newer, as "
        "onnxruntime is built for CUDA 12.8"
    )
    install(monkeypatch, Libcuda(12020), "535.183.01")
    assert find_cuda_fault(make_runtime(BOTH, cuda_version="12.8")) is None


def test_an_onnxruntime_that_does_not_say_its_cuda_is_tried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    install(monkeypatch, Libcuda(11080))
    assert find_cuda_fault(make_runtime(BOTH, cuda_version="")) is None
    install(monkeypatch, None, None)
    assert find_cuda_fault(make_runtime(BOTH, cuda_version="")) == (
        "the NVIDIA driver is missing (libcuda.so.1): found none, needed one for the CUDA that "
        "onnxruntime is built for"
    )


def test_a_gpu_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, Libcuda())
    assert find_cuda_fault(make_runtime(BOTH), 1) == (
        "LIMELIGHT_CUDA_DEVICE is 1, expected less than 1, the number of GPUs that the NVIDIA "
        "driver 580.65.06 (CUDA 13.0) shows (CUDA_VISIBLE_DEVICES hides others)"
    )


def test_missing_libraries_are_named_as_onnxruntime_prints_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install(monkeypatch, Libcuda())

    def preload() -> None:
        print("Failed to load libcublasLt.so.12: cannot open shared object file")  # noqa: T201
        print("Failed to load libcudnn.so.9: no such file")  # noqa: T201
        print("Please follow https://onnxruntime.ai/docs/install/")  # noqa: T201

    assert find_cuda_fault(make_runtime(BOTH, preload)) == (
        "CUDA libraries are missing (libcublasLt.so.12, libcudnn.so.9; the extra 'gpu' brings them)"
    )
    assert capsys.readouterr().out == ""


def test_where_all_is_there_nothing_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, Libcuda())
    assert find_cuda_fault(make_runtime(BOTH)) is None


def test_the_first_screen_says_what_computes_and_how(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, Libcuda())
    assert describe_device(CudaOptions()) == (
        "GPU 0, NVIDIA H200, 140 GiB, capability 9.0, driver 580.65.06 (CUDA 13.0), TF32 off"
    )
    assert str(describe_device(CudaOptions(tf32=True))).endswith("TF32 on")


def test_a_driver_that_says_nothing_is_not_described(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, None)
    assert describe_device(CudaOptions()) is None
    install(monkeypatch, Libcuda(init=NO_DEVICE))
    assert describe_device(CudaOptions()) is None
