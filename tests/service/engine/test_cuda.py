"""What CUDA needs, found out before onnxruntime fails without saying why."""

from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import cast

import pytest

from service.engine import cuda
from service.engine.cuda import find_cuda_fault, is_loadable

BOTH = ["CUDAExecutionProvider", "CPUExecutionProvider"]


def make_runtime(available: list[str], preload: Callable[[], None] = lambda: None) -> ModuleType:
    runtime = SimpleNamespace(get_available_providers=lambda: available, preload_dlls=preload)
    return cast("ModuleType", runtime)


def test_an_onnxruntime_without_cuda_is_named() -> None:
    assert find_cuda_fault(make_runtime(BOTH[1:])) == (
        "this onnxruntime has no CUDA (install the extra 'gpu' instead of 'cpu')"
    )


def test_a_missing_driver_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "is_loadable", lambda _: False)
    assert find_cuda_fault(make_runtime(BOTH)) == ("the NVIDIA driver is missing (libcuda.so.1)")


def test_missing_libraries_are_named_as_onnxruntime_prints_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cuda, "is_loadable", lambda _: True)

    def preload() -> None:
        print("Failed to load libcublasLt.so.12: cannot open shared object file")  # noqa: T201
        print("Failed to load libcudnn.so.9: no such file")  # noqa: T201
        print("Please follow https://onnxruntime.ai/docs/install/")  # noqa: T201

    assert find_cuda_fault(make_runtime(BOTH, preload)) == (
        "CUDA libraries are missing (libcublasLt.so.12, libcudnn.so.9; the extra 'gpu' brings them)"
    )
    assert capsys.readouterr().out == ""


def test_where_all_is_there_nothing_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "is_loadable", lambda _: True)
    assert find_cuda_fault(make_runtime(BOTH)) is None


@pytest.mark.parametrize(
    ("library", "there"), [("libc.so.6", True), ("libnothing-of-that-name.so.1", False)]
)
def test_a_library_is_there_if_the_loader_finds_it(library: str, *, there: bool) -> None:
    assert is_loadable(library) is there
