"""onnxruntime: found, told to be quiet, and made to run where it was asked to."""

import importlib.metadata
import logging
import os
from pathlib import Path
from types import ModuleType
from typing import Any, Final, Literal, Protocol

from numpy.typing import NDArray

from service.engine.cuda import find_cuda_fault
from service.errors import StartError

CPU: Final = "CPUExecutionProvider"
CUDA: Final = "CUDAExecutionProvider"
Provider = Literal["cpu", "cuda"]
ERRORS_ONLY = 3

log = logging.getLogger("limelight")


class Session(Protocol):
    """The part of ``onnxruntime.InferenceSession`` that the engine uses."""

    def run(
        self, output_names: list[str], input_feed: dict[str, NDArray[Any]]
    ) -> list[NDArray[Any]]:
        """Compute the named outputs."""

    def get_providers(self) -> list[str]:
        """Where the session computes, the first choice first."""


def load_runtime() -> ModuleType:
    """Import onnxruntime.

    Raises:
        StartError: if it is not installed, or installed twice under two names, each of which
            overwrites files of the other.
    """
    packages = [name for name in ("onnxruntime", "onnxruntime-gpu") if is_installed(name)]
    if not packages:
        raise StartError("onnxruntime is not installed; install the extra 'cpu' or 'gpu'")
    if len(packages) > 1:
        raise StartError(
            "onnxruntime and onnxruntime-gpu are both installed and overwrite each other; "
            "uninstall both, then install one extra, 'cpu' or 'gpu'"
        )
    # Read at import: without it the official wheels send usage events.
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    import onnxruntime

    module: ModuleType = onnxruntime
    return module


def is_installed(package: str) -> bool:
    """Whether a distribution of this name is installed."""
    try:
        importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def open_session(
    runtime: ModuleType, path: Path, provider: Provider, intra_op_threads: int
) -> Session:
    """Open one graph.

    Args:
        runtime: the onnxruntime module.
        path: of the ONNX file.
        provider: where to compute.
        intra_op_threads: cores for one run.

    Raises:
        StartError: if onnxruntime cannot open the file, or does not run it on `provider`.
    """
    options = runtime.SessionOptions()
    options.intra_op_num_threads = intra_op_threads
    options.inter_op_num_threads = 1
    # Threads that spin after a run take the core from the event loop: 2 to 3 times slower
    # under load, measured with 2 cores.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    # Shape inference holds the last axis of the weights to be 0, whatever the file declares,
    # and onnxruntime warns of it in every run.
    options.log_severity_level = ERRORS_ONLY
    # TF32 would answer with 3 digits.
    providers = [(CUDA, {"use_tf32": "0"}), CPU] if provider == "cuda" else [CPU]
    try:
        session: Session = runtime.InferenceSession(path, options, providers=providers)
    except Exception as error:  # onnxruntime's errors have no class in common
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise StartError(
            f"model {path.parent.parent.name}/{path.parent.name}: {path.name} cannot be opened: "
            f"{reason}"
        ) from error
    check_provider(session, provider)
    return session


def check_provider(session: Session, provider: Provider) -> None:
    """See where the session really runs: onnxruntime falls back to the CPU without an error.

    Raises:
        StartError: if that is not `provider`.
    """
    actual = session.get_providers()[0]
    if actual != (CUDA if provider == "cuda" else CPU):
        raise StartError(f"onnxruntime was asked for {provider}, but runs on {actual}")


def choose_provider(
    runtime: ModuleType, path: Path, wish: Literal["auto", "cpu", "cuda"], intra_op_threads: int
) -> Provider:
    """Decide where to compute, by opening the graph at `path`.

    Raises:
        StartError: if `wish` is cuda and the graph does not run there.
    """
    if wish == "cpu" or (wish == "auto" and CUDA not in runtime.get_available_providers()):
        return "cpu"
    fault = find_cuda_fault(runtime) or try_cuda(runtime, path, intra_op_threads)
    if fault is None:
        return "cuda"
    if wish == "cuda":
        raise StartError(
            f"LIMELIGHT_PROVIDER is cuda, but {fault}; mend that, or set LIMELIGHT_PROVIDER to "
            "cpu or auto"
        )
    log.warning("running on the CPU: %s", fault)
    return "cpu"


def try_cuda(runtime: ModuleType, path: Path, intra_op_threads: int) -> str | None:
    """Open the graph at `path` on CUDA, and say what was wrong; nothing where it runs."""
    try:
        open_session(runtime, path, "cuda", intra_op_threads)
    except Exception as error:  # onnxruntime's own errors share no base class
        return str(error)
    return None
