"""Whether CUDA can work here, found out before onnxruntime fails without saying why."""

import contextlib
import ctypes
import io
import re
from types import ModuleType
from typing import Final

DRIVER: Final = "libcuda.so.1"


def find_cuda_fault(runtime: ModuleType) -> str | None:
    """Load what CUDA needs, and say what is missing; nothing where all is there.

    Args:
        runtime: the onnxruntime module; CUDA's libraries are loaded from the NVIDIA packages
            beside it, since nothing else puts them on the loader's path.
    """
    if "CUDAExecutionProvider" not in runtime.get_available_providers():
        return "this onnxruntime has no CUDA (install the extra 'gpu' instead of 'cpu')"
    if not is_loadable(DRIVER):
        return f"the NVIDIA driver is missing ({DRIVER})"
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        runtime.preload_dlls()
    missing = re.findall(r"Failed to load ([^:\s]+)", said.getvalue())
    if missing:
        return f"CUDA libraries are missing ({', '.join(missing)}; the extra 'gpu' brings them)"
    return None


def is_loadable(library: str) -> bool:
    """Whether the system's loader finds a library."""
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True
