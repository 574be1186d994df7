"""What onnxruntime says when a device has no memory left, told from its other errors.

It has one class of error for all; the texts are those of `bfc_arena.cc`, of the CUDA runtime, and
of cuBLAS and cuDNN.
"""

import re
from typing import Final

from service.errors import DeviceMemoryError

SHORTAGE: Final = re.compile(
    r"is smaller than requested bytes of (\d+)"
    r"|Failed to allocate memory for requested buffer of size (\d+)"
    r"|CUDA(?: failure \d+)?: out of memory|cudaErrorMemoryAllocation"
    r"|CUBLAS_STATUS_ALLOC_FAILED"
    r"|CUDNN_STATUS_(?:INTERNAL_ERROR_DEVICE_)?ALLOC(?:ATION)?_FAILED"
)


def find_shortage(error: Exception) -> DeviceMemoryError | None:
    """The error for the client, if `error` says that memory ran out; nothing for any other."""
    found = SHORTAGE.search(str(error))
    if found is None:
        return None
    wanted_bytes = found[1] or found[2]
    detail = f": {wanted_bytes} bytes more were wanted" if wanted_bytes else ""
    return DeviceMemoryError(
        f"the GPU has no memory left for this{detail}; try again later, send fewer or shorter "
        "sequences, or raise LIMELIGHT_CUDA_ARENA_BYTES where it is set"
    )
