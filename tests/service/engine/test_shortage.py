"""Which errors of onnxruntime say that a device has no memory left."""

import pytest

from service.engine.shortage import find_shortage

PREFIX = "[ONNXRuntimeError] : 6 : RUNTIME_EXCEPTION : Non-zero status code returned while running "
# Two of onnxruntime's arena, seen with 1.32 and written in its source, then of CUDA's calls.
SHORTAGES = {
    f"{PREFIX}MatMul node. bfc_arena.cc:360 Available memory of 4113920 is smaller than requested "
    "bytes of 36000000": ": 36000000 bytes more were wanted",
    f"{PREFIX}Add node. bfc_arena.cc:376 Failed to allocate memory for requested buffer of size 4"
    "096": ": 4096 bytes more were wanted",
    "CUDA failure 2: out of memory ; GPU=0 ; hostname=h ; file=cuda_allocator.cc": "",
    "CUBLAS failure 3: CUBLAS_STATUS_ALLOC_FAILED ; GPU=0 ; expr=cublasCreate(&handle)": "",
    "CUDNN failure 4002: CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED ; GPU=0": "",
}
OTHERS = (
    "CUDA failure 700: an illegal memory access was encountered ; GPU=0",
    "CUBLAS failure 13: CUBLAS_STATUS_EXECUTION_FAILED ; GPU=0",
    "[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : Got invalid dimensions for input: query",
)


@pytest.mark.parametrize(("text", "detail"), SHORTAGES.items())
def test_a_shortage_is_told_with_what_was_wanted(text: str, detail: str) -> None:
    assert str(find_shortage(RuntimeError(text))) == (
        f"the GPU has no memory left for this{detail}; try again later, send fewer or shorter "
        "sequences, or raise LIMELIGHT_CUDA_ARENA_BYTES where it is set"
    )


@pytest.mark.parametrize("text", OTHERS)
def test_other_errors_are_none(text: str) -> None:
    assert find_shortage(RuntimeError(text)) is None
