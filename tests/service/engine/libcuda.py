"""Stands for libcuda.so.1, the library of the NVIDIA driver: no GPU is behind it."""

import ctypes
from typing import Any

import pytest

from service.engine import driver

NO_DEVICE = 100
TEXTS = {NO_DEVICE: b"no CUDA-capable device is detected", 101: b"invalid device ordinal"}


class Libcuda:
    """The calls that are made of the library, answered as a driver answers them.

    Args:
        cuda_version: as the driver counts: 13000 is 13.0.
        gpus: name, bytes of memory, and capability of each.
        init: what cuInit returns.
    """

    def __init__(
        self,
        cuda_version: int = 13000,
        gpus: tuple[tuple[str, int, tuple[int, int]], ...] = (
            ("NVIDIA H200", 140 * 2**30, (9, 0)),
        ),
        init: int = 0,
    ) -> None:
        self._cuda_version = cuda_version
        self._gpus = gpus
        self._init = init
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("cu"):
            raise AttributeError(name)
        self.calls.append(name)
        return getattr(self, f"_answer_{name}")

    def _answer_cuDriverGetVersion(self, found: Any) -> int:
        return put(found, self._cuda_version)

    def _answer_cuInit(self, flags: int) -> int:
        assert flags == 0
        return self._init

    def _answer_cuDeviceGetCount(self, found: Any) -> int:
        return put(found, len(self._gpus))

    def _answer_cuDeviceGet(self, found: Any, number: int) -> int:
        return put(found, 40 + number) if number < len(self._gpus) else 101

    def _answer_cuDeviceGetName(self, name: Any, size: int, device: Any) -> int:
        name.value = self._gpus[device.value - 40][0].encode()[: size - 1]
        return 0

    def _answer_cuDeviceTotalMem_v2(self, found: Any, device: Any) -> int:
        return put(found, self._gpus[device.value - 40][1])

    def _answer_cuDeviceGetAttribute(self, found: Any, attribute: int, device: Any) -> int:
        return put(found, self._gpus[device.value - 40][2][{75: 0, 76: 1}[attribute]])

    def _answer_cuGetErrorString(self, code: int, found: Any) -> int:
        return put(found, TEXTS[code]) if code in TEXTS else 1


def put(pointer: Any, value: Any) -> int:
    """Write where a `byref` points; says that it went well."""
    pointer._obj.value = value
    return 0


def install(
    monkeypatch: pytest.MonkeyPatch, library: Libcuda | None, module: str | None = "580.65.06"
) -> None:
    """Let a library, or none, be the driver's, and a version that of the kernel's module."""

    def load(name: str) -> Libcuda:
        assert name == "libcuda.so.1"
        if library is None:
            raise OSError(f"{name}: cannot open shared object file")
        return library

    monkeypatch.setattr(ctypes, "CDLL", load)
    monkeypatch.setattr(driver, "read_module_version", lambda: module)
    monkeypatch.setattr("service.engine.cuda.read_module_version", lambda: module)
