"""Which kernel attends in a graph: onnxruntime tells it in what it writes, and nowhere else.

Two places, by version: ``SdpaKernel=...`` on stdout, where the environment has
``ORT_ENABLE_ATTENTION_KERNEL_DEBUG_INFO``, and ``ONNX Attention: using ...`` in the verbose log on
stderr. Both are written past Python, so a process of its own runs the graph.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks.gpu.layers import WIDE, Layer
from benchmarks.gpu.note import Note
from benchmarks.gpu.stage import Stage
from export.hidings import Hiding, draw_tokens, graph_inputs
from export.runtime import graphs_of, load_runtime, open_graph
from model.contract import DECOMPOSED, GRAPHS, GraphSpec

NAMES: Final = {
    "FLASH_ATTENTION": "flash",
    "EFFICIENT_ATTENTION": "memory-efficient",
    "CUDNN_FLASH_ATTENTION": "cuDNN",
    "MATH": "unfused",
    "Flash Attention": "flash",
    "Memory Efficient Attention": "memory-efficient",
    "cuDNN SDPA": "cuDNN",
    "unified unfused path": "unfused",
}
PATTERN: Final = re.compile(r"SdpaKernel=([A-Z_]+)|Attention: using ([A-Za-z ]+?) \(")
SIZES: Final = ((1, 128, 128), (1, 1, 128), (2, 100, 101))
TIMEOUT_S: Final = 60


def kernels(stage: Stage) -> Iterator[Note]:
    """See which kernel attends in each graph, by size."""
    for layer in WIDE:
        for graph in graphs_of(stage.provider):
            if graph is not DECOMPOSED:  # which has no operator to choose a kernel for
                for sizes in SIZES:
                    yield Note(describe(layer, graph, sizes), ask(stage, layer, graph, sizes))


def describe(layer: Layer, graph: GraphSpec, sizes: tuple[int, int, int]) -> str:
    """Model, graph, and B, L, S."""
    return f"{layer.name} {graph.name}, {'x'.join(map(str, sizes))}"


def ask(stage: Stage, layer: Layer, graph: GraphSpec, sizes: tuple[int, int, int]) -> str:
    """Run a graph once in a process of its own, and read what it writes."""
    place = [layer.name, str(stage.find(layer)), graph.name, stage.provider]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.gpu.kernels", *place, *map(str, sizes)],
        check=False,
        env=os.environ | {"ORT_ENABLE_ATTENTION_KERNEL_DEBUG_INFO": "1"},
        capture_output=True,
        text=True,
        errors="replace",
        timeout=TIMEOUT_S,
    )
    if done.returncode:
        return f"failed: {(done.stderr.strip().splitlines() or ['no word'])[-1]}"
    return ", ".join(read_kernels(done.stdout + done.stderr)) or "not told"


def read_kernels(text: str) -> list[str]:
    """The kernels that onnxruntime says it has run, each once, in order."""
    found = [match[1] or match[2] for match in PATTERN.finditer(text)]
    return list(dict.fromkeys(NAMES.get(name, name) for name in found))


def run_once(name: str, directory: str, graph: str, provider: str, *sizes: str) -> None:
    """What the process does: one run, with everything in the log."""
    (layer,) = (each for each in WIDE if each.name == name)
    (spec,) = (each for each in GRAPHS if each.name == graph)
    load_runtime().set_default_logger_severity(0)
    run = open_graph(Path(directory) / spec.file, "cuda" if provider == "cuda" else "cpu")
    batch, length, keys = map(int, sizes)
    tokens = draw_tokens(np.random.default_rng(0), layer.spec, batch, length, keys)
    run(list(spec.outputs), tokens | graph_inputs(spec, tokens, Hiding("none")))


if __name__ == "__main__":
    run_once(*sys.argv[1:])
