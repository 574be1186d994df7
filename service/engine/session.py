"""onnxruntime: found, told to be quiet, and made to run where it was asked to."""

import importlib.metadata
import logging
import os
from pathlib import Path
from types import ModuleType
from typing import Any, Final, Literal, Protocol

from numpy.typing import NDArray

from service.engine.bound_session import BoundSession
from service.engine.cuda import CudaOptions, find_cuda_fault
from service.engine.native import Native
from service.engine.shortage import find_shortage
from service.errors import StartError

CPU: Final = "CPUExecutionProvider"
CUDA: Final = "CUDAExecutionProvider"
Provider = Literal["cpu", "cuda"]
Width = Literal["narrow", "wide"]  # beside other runs, or alone on the machine
ERRORS_ONLY = 3
SPIN_US: Final = "30"
SHRINKING: Final = ("memory.enable_memory_arena_shrinkage", "cpu:0")
"""Option of a run, onnxruntime_run_options_config_keys.h: unused memory goes back after it."""

DEFAULT_CUDA: Final = CudaOptions()
COSTLY: Final = frozenset({"Attention", "MatMul", "Softmax"})
"""Operators that must not be left to the CPU; that is where shapes are computed, by design."""

log = logging.getLogger("limelight")


class Session(Protocol):
    """The part of ``onnxruntime.InferenceSession`` that the engine uses."""

    def run(
        self,
        output_names: list[str],
        input_feed: dict[str, NDArray[Any]],
        run_options: Native = None,
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
    runtime: ModuleType,
    path: Path,
    provider: Provider,
    intra_op_threads: int,
    width: Width = "narrow",
    cuda: CudaOptions = DEFAULT_CUDA,
) -> Session:
    """Open one graph.

    Args:
        runtime: the onnxruntime module.
        path: of the ONNX file.
        provider: where to compute.
        intra_op_threads: cores for one run.
        width: of its runs.
        cuda: how CUDA is used, where it is the provider.

    Raises:
        StartError: if onnxruntime cannot open the file, or does not run it on `provider`.
        DeviceMemoryError: if the GPU has no memory left for it.
    """
    options = make_options(runtime, intra_op_threads, width)
    providers: list[Any] = [CPU]
    if provider == "cuda":
        options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
        providers = [(CUDA, cuda.to_provider_options()), CPU]
    try:
        session: Session = runtime.InferenceSession(path, options, providers=providers)
    except Exception as error:  # onnxruntime's errors have no class in common
        if provider == "cuda" and (shortage := find_shortage(error)):
            raise shortage from None
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise StartError(
            f"model {path.parent.parent.name}/{path.parent.name}: {path.name} cannot be opened: "
            f"{reason}"
        ) from error
    check_provider(session, provider)
    if provider == "cpu":
        return session
    check_operators(runtime, session, path.name)
    return BoundSession(runtime, session, cuda.device)


def make_options(runtime: ModuleType, intra_op_threads: int, width: Width) -> Native:
    """Options of a session, whatever its provider; the arguments are those of `open_session`."""
    options = runtime.SessionOptions()
    options.intra_op_num_threads = intra_op_threads
    options.inter_op_num_threads = 1
    # Threads that spin after a run take the core from the event loop: 2 to 3 times slower
    # under load, measured with 2 cores. Those of a run that is alone spin from one operator to the
    # next and no longer: 1x16 takes 0.12 ms instead of 0.16, and beside a busy process no more
    # than with one thread.
    options.add_session_config_entry("session.intra_op.allow_spinning", str(int(width == "wide")))
    options.add_session_config_entry("session.intra_op.spin_duration_us", SPIN_US)
    # A pattern is kept for each shape, and takes twice the memory: 1105 MiB for 1x4096 at once
    # instead of 577, 306 for 1x2048 instead of 173, and no less time without (measured).
    options.enable_mem_pattern = False
    # Shape inference holds the last axis of the weights to be 0, whatever the file declares,
    # and onnxruntime warns of it in every run.
    options.log_severity_level = ERRORS_ONLY
    return options


def make_shrinking_options(runtime: ModuleType) -> Native:
    """Options of a run on the CPU after which a session holds no memory that it does not use.

    It keeps what a run took for the next one, and nothing else makes it give that back.
    """
    options = runtime.RunOptions()
    options.add_run_config_entry(*SHRINKING)
    return options


def check_provider(session: Session, provider: Provider) -> None:
    """See where the session really runs: onnxruntime falls back to the CPU without an error.

    Raises:
        StartError: if that is not `provider`.
    """
    actual = session.get_providers()[0]
    if actual != (CUDA if provider == "cuda" else CPU):
        raise StartError(f"onnxruntime was asked for {provider}, but runs on {actual}")


def check_operators(runtime: ModuleType, session: Native, file: str) -> None:
    """See that CUDA has a kernel for what costs: onnxruntime computes the rest without an error.

    Args:
        runtime: the onnxruntime module.
        session: of onnxruntime, on CUDA.
        file: that it has opened.

    Raises:
        StartError: naming an operator that is left to the CPU.
    """
    if not hasattr(session, "get_provider_graph_assignment_info"):
        return  # an onnxruntime that does not say
    for part in session.get_provider_graph_assignment_info():
        left = COSTLY.intersection(node.op_type for node in part.get_nodes())
        if part.ep_name != CUDA and left:
            raise StartError(
                f"onnxruntime {runtime.__version__} has no kernel on cuda for {min(left)} in "
                f"{file}, and would leave it to {part.ep_name}; install a newer onnxruntime-gpu"
            )


def choose_provider(
    runtime: ModuleType,
    path: Path,
    wish: Literal["auto", "cpu", "cuda"],
    intra_op_threads: int,
    cuda: CudaOptions = DEFAULT_CUDA,
) -> Provider:
    """Decide where to compute, by opening the graph at `path`.

    Raises:
        StartError: if `wish` is cuda and the graph does not run there.
    """
    if wish == "cpu" or (wish == "auto" and CUDA not in runtime.get_available_providers()):
        return "cpu"
    fault = find_cuda_fault(runtime, cuda.device)
    fault = fault or try_cuda(runtime, path, intra_op_threads, cuda)
    if fault is None:
        return "cuda"
    if wish == "cuda":
        raise StartError(
            f"LIMELIGHT_PROVIDER is cuda, but {fault}; mend that, or set LIMELIGHT_PROVIDER to "
            "cpu or auto"
        )
    log.warning("running on the CPU: %s", fault)
    return "cpu"


def try_cuda(
    runtime: ModuleType, path: Path, intra_op_threads: int, cuda: CudaOptions
) -> str | None:
    """Open the graph at `path` on CUDA, and say what was wrong; nothing where it runs."""
    try:
        open_session(runtime, path, "cuda", intra_op_threads, cuda=cuda)
    except Exception as error:  # onnxruntime's own errors share no base class
        return str(error)
    return None
