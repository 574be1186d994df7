"""What onnxruntime writes of the kernels that it ran."""

import pytest

from benchmarks.gpu.kernels import read_kernels

DEBUG_INFO = "\x1b[36mOperator=Attention Node=n DataType=fp16 SdpaKernel={}\x1b[0m\n"
LOG = "[V:onnxruntime:, attention.cc:1] {} (batch=1, q_seq=128, total_seq=128, past=no)\n"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", []),
        ("AttentionKernelOptions: FLASH_ATTENTION=1 MATH=1\n", []),
        (DEBUG_INFO.format("FLASH_ATTENTION"), ["flash"]),
        (DEBUG_INFO.format("CUDNN_FLASH_ATTENTION"), ["cuDNN"]),
        (DEBUG_INFO.format("EFFICIENT_ATTENTION"), ["memory-efficient"]),
        (DEBUG_INFO.format("TRT_FUSED_ATTENTION"), ["TRT_FUSED_ATTENTION"]),
        (LOG.format("ONNX Attention: using Flash Attention"), ["flash"]),
        (LOG.format("ONNX Attention: using Memory Efficient Attention"), ["memory-efficient"]),
        (LOG.format("ONNX Attention: using cuDNN SDPA"), ["cuDNN"]),
        (LOG.format("Attention: using unified unfused path"), ["unfused"]),
    ],
)
def test_both_ways_in_which_a_kernel_is_told_are_read(text: str, names: list[str]) -> None:
    assert read_kernels(f"some line\n{text}another\n") == names


def test_a_kernel_that_is_told_twice_is_one() -> None:
    flash = LOG.format("ONNX Attention: using Flash Attention")
    text = DEBUG_INFO.format("FLASH_ATTENTION") + flash + DEBUG_INFO.format("MATH") + flash
    assert read_kernels(text) == ["flash", "unfused"]
