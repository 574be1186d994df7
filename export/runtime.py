"""onnxruntime, as it runs the graphs that are verified."""

import os
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from export.errors import ExportError
from model.contract import FUSED_WEIGHTS, GRAPHS, GraphSpec

Provider = Literal["cpu", "cuda"]
Run = Callable[[list[str], dict[str, NDArray[Any]]], list[NDArray[np.float32]]]

CPU: Final = "CPUExecutionProvider"
CUDA: Final = "CUDAExecutionProvider"


def graphs_of(provider: Provider) -> tuple[GraphSpec, ...]:
    """The graphs that a server runs there: on CUDA the Attention operator gives no weights."""
    return tuple(graph for graph in GRAPHS if provider == "cpu" or graph is not FUSED_WEIGHTS)


def open_graph(path: Path, provider: Provider = "cpu") -> Run:
    """Open a graph with the optimisations that serve it.

    Raises:
        ExportError: if onnxruntime cannot open it, or not on `provider`.
    """
    onnxruntime = load_runtime()
    if provider == "cuda" and hasattr(onnxruntime, "preload_dlls"):
        # From the NVIDIA packages beside it: nothing else puts them on the loader's path.
        onnxruntime.preload_dlls()
    options = onnxruntime.SessionOptions()
    # Errors only: shape inference holds the last axis of the weights to be 0, whatever the file
    # declares, and onnxruntime warns of it in every run.
    options.log_severity_level = 3
    # As in the server. Beside the threads of numpy, which computes the reference, spinning ones
    # made a verification 10 times slower (measured with 2 cores).
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    # What they take for one size they keep for the next: of seven sizes, 10 to 35 MiB.
    options.enable_mem_pattern = options.enable_cpu_mem_arena = False
    # TF32 would answer with 3 digits.
    providers = [(CUDA, {"use_tf32": "0"}), CPU] if provider == "cuda" else [CPU]
    try:
        session = onnxruntime.InferenceSession(path, options, providers=providers)
    except Exception as error:  # onnxruntime's errors have no class in common
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise ExportError(f"'{path}' cannot be opened: {reason}; export the layer again") from None
    check_provider(session.get_providers()[0], provider)
    run: Run = session.run
    return run


def check_provider(actual: str, provider: Provider) -> None:
    """See where a session really runs: onnxruntime falls back to the CPU without an error.

    Raises:
        ExportError: if that is not `provider`.
    """
    if actual != (CUDA if provider == "cuda" else CPU):
        raise ExportError(
            f"onnxruntime was asked for {provider}, but runs on {actual}; install the extra 'gpu' "
            "on a machine with an NVIDIA GPU, or take --provider cpu"
        )


def load_runtime() -> ModuleType:
    """Import onnxruntime with its telemetry off, which is read once, at the import."""
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    import onnxruntime

    module: ModuleType = onnxruntime
    return module
