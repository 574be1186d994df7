"""The NVIDIA driver, asked directly: which one is there, and with which GPUs.

onnxruntime says neither. The calls are those of the CUDA driver API,
https://docs.nvidia.com/cuda/cuda-driver-api/
"""

import ctypes
import re
from ctypes import byref, c_char_p, c_int, c_size_t
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

LIBRARY: Final = "libcuda.so.1"
KERNEL_MODULE: Final = Path("/proc/driver/nvidia/version")
NAME_BYTES: Final = 256
CAPABILITY_MAJOR: Final = 75  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, and _MINOR
CAPABILITY_MINOR: Final = 76
GIB: Final = 2**30

CudaVersion = tuple[int, int]


class DriverError(Exception):
    """The driver refuses a call; the text is its own."""


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU.

    Attributes:
        number: as the driver counts those that ``CUDA_VISIBLE_DEVICES`` leaves.
        name: of the product.
        memory_bytes: all that it has.
        capability: what its architecture can, as CUDA counts: 9.0 is Hopper.
    """

    number: int
    name: str
    memory_bytes: int
    capability: tuple[int, int]

    def __str__(self) -> str:
        major, minor = self.capability
        memory_gib = self.memory_bytes / GIB
        return f"GPU {self.number}, {self.name}, {memory_gib:.0f} GiB, capability {major}.{minor}"


class Driver:
    """The driver of this machine.

    Args:
        library: the driver's, loaded.
        version: of the kernel's module, such as 580.65.06; absent where it is not to be seen.
    """

    def __init__(self, library: Any, version: str | None) -> None:  # noqa: ANN401 - ctypes
        self._library = library
        self.version = version

    @classmethod
    def find(cls) -> Self | None:
        """The driver, if there is one for programs: a module of the kernel alone is none."""
        try:
            library = ctypes.CDLL(LIBRARY)
        except OSError:
            return None
        return cls(library, read_module_version())

    def __str__(self) -> str:
        try:
            major, minor = self.read_cuda_version()
        except DriverError:
            return self.version or "unknown version"
        return f"{self.version or 'unknown version'} (CUDA {major}.{minor})"

    def read_cuda_version(self) -> CudaVersion:
        """The newest CUDA that the driver can serve.

        Raises:
            DriverError: if it does not say.
        """
        found = c_int()
        self._call("cuDriverGetVersion", byref(found))
        return found.value // 1000, found.value % 1000 // 10

    def count_gpus(self) -> int:
        """How many GPUs this process may use; ``CUDA_VISIBLE_DEVICES`` hides some.

        Raises:
            DriverError: if there is none, or the driver does not work.
        """
        count = c_int()
        self._call("cuInit", 0)
        self._call("cuDeviceGetCount", byref(count))
        return count.value

    def read_gpu(self, number: int) -> Gpu:
        """What one GPU is, after they were counted.

        Raises:
            DriverError: if there is no such GPU.
        """
        device, name, memory = c_int(), ctypes.create_string_buffer(NAME_BYTES), c_size_t()
        self._call("cuDeviceGet", byref(device), number)
        self._call("cuDeviceGetName", name, NAME_BYTES, device)
        self._call("cuDeviceTotalMem_v2", byref(memory), device)
        major = self._read(device, CAPABILITY_MAJOR)
        minor = self._read(device, CAPABILITY_MINOR)
        return Gpu(number, name.value.decode(errors="replace"), memory.value, (major, minor))

    def _read(self, device: c_int, attribute: int) -> int:
        value = c_int()
        self._call("cuDeviceGetAttribute", byref(value), attribute, device)
        return value.value

    def _call(self, name: str, *arguments: object) -> None:
        code = getattr(self._library, name)(*arguments)
        if code:
            text = c_char_p()
            self._library.cuGetErrorString(code, byref(text))
            said = (text.value or b"").decode(errors="replace") or f"error {code}"
            raise DriverError(f"{name}: {said}")


def read_module_version(path: Path = KERNEL_MODULE) -> str | None:
    """The version of the kernel's module, from the first line of a file that it provides.

    ``NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12 19:39:15 UTC 2024``
    """
    try:
        text = path.read_text(errors="replace")
    except OSError:
        return None
    found = re.search(r"\b(\d{3,}\.\d+(?:\.\d+)?)\b", text)
    return found and found[1]
