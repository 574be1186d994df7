"""Whether CUDA can work here, found out before onnxruntime fails without saying why."""

import contextlib
import io
import re
from dataclasses import dataclass
from types import ModuleType
from typing import Final

from service.engine.driver import LIBRARY, Driver, DriverError, read_module_version

NEEDED_DRIVERS: Final = {12: 525, 13: 580}
"""By CUDA's major version, the oldest driver that it runs on.

https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html
"""


@dataclass(frozen=True, slots=True)
class CudaOptions:
    """How sessions use CUDA.

    Attributes:
        device: number of the GPU, as the driver counts those that ``CUDA_VISIBLE_DEVICES`` leaves.
        tf32: whether products of float32 may be rounded to TF32's 10 bits.
        arena_bytes: most device memory that a session's arena takes; all there is where absent.
        join_tokens: most tokens of a run of several requests, padding included.
        join_delay_us: longest wait for requests to join, where a model's config says none.
    """

    device: int = 0
    tf32: bool = False
    arena_bytes: int | None = None
    join_tokens: int = 32_768
    join_delay_us: int = 200

    def to_provider_options(self) -> dict[str, str]:
        """The options of onnxruntime's provider, by the names of `cuda_execution_provider_info.cc`.

        The arena grows by what is asked for: doubled each time, as it is by default, it ends with
        half of the memory unused.
        """
        options = {
            "device_id": str(self.device),
            "use_tf32": str(int(self.tf32)),  # on by default: it answers with 3 digits
            "arena_extend_strategy": "kSameAsRequested",
        }
        limit = {} if self.arena_bytes is None else {"gpu_mem_limit": str(self.arena_bytes)}
        return options | limit


def find_cuda_fault(runtime: ModuleType, device: int = 0) -> str | None:
    """Look for what CUDA needs, and say what is missing; nothing where all is there.

    Args:
        runtime: the onnxruntime module; CUDA's libraries are loaded from the NVIDIA packages
            beside it, since nothing else puts them on the loader's path.
        device: number of the GPU that is to compute.
    """
    if "CUDAExecutionProvider" not in runtime.get_available_providers():
        return "this onnxruntime has no CUDA (install the extra 'gpu' instead of 'cpu')"
    return find_driver_fault(runtime, device) or find_library_fault(runtime)


def find_driver_fault(runtime: ModuleType, device: int) -> str | None:
    """Say what is wrong with the driver, or that it has no such GPU; nothing where all is well."""
    driver, built_for = Driver.find(), read_cuda_version(runtime)
    if driver is None:
        module = read_module_version()
        found = f"found {module} in the kernel alone" if module else "found none"
        return f"the NVIDIA driver is missing ({LIBRARY}): {found}, {tell_need(built_for)}"
    try:
        if built_for is not None and driver.read_cuda_version()[0] < built_for[0]:
            return f"the NVIDIA driver is too old: found {driver}, {tell_need(built_for)}"
        count = driver.count_gpus()
    except DriverError as error:
        need = tell_need(built_for)
        return f"the NVIDIA driver does not work ({error}): found {driver}, {need}"
    if device >= count:
        return (
            f"LIMELIGHT_CUDA_DEVICE is {device}, expected less than {count}, the number of GPUs "
            f"that the NVIDIA driver {driver} shows (CUDA_VISIBLE_DEVICES hides others)"
        )
    return None


def tell_need(built_for: tuple[int, int] | None) -> str:
    """Which driver is needed, and why."""
    if built_for is None or built_for[0] not in NEEDED_DRIVERS:
        return "needed one for the CUDA that onnxruntime is built for"
    major, minor = built_for
    return (
        f"needed {NEEDED_DRIVERS[major]} or newer, as onnxruntime is built for CUDA {major}.{minor}"
    )


def read_cuda_version(runtime: ModuleType) -> tuple[int, int] | None:
    """The CUDA that onnxruntime is built for, if it says."""
    found = re.match(r"(\d+)\.(\d+)", str(getattr(runtime, "cuda_version", "")))
    return (int(found[1]), int(found[2])) if found else None


def find_library_fault(runtime: ModuleType) -> str | None:
    """Load CUDA's own libraries, and say which are missing."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        runtime.preload_dlls()
    missing = re.findall(r"Failed to load ([^:\s]+)", said.getvalue())
    if missing:
        return f"CUDA libraries are missing ({', '.join(missing)}; the extra 'gpu' brings them)"
    return None


def describe_device(options: CudaOptions) -> str | None:
    """The GPU, its driver and how it computes, in a line; nothing where the driver does not say."""
    driver = Driver.find()
    if driver is None:
        return None
    try:
        driver.count_gpus()
        gpu = driver.read_gpu(options.device)
    except DriverError:
        return None
    return f"{gpu}, driver {driver}, TF32 {'on' if options.tf32 else 'off'}"
