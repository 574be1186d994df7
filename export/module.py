"""`export_module`: a live PyTorch layer becomes a model that the server loads."""

import copy
import importlib.metadata
import json
from collections.abc import Callable
from pathlib import Path

from torch import nn

from export.graphs import trace_graph
from export.onnx_file import tidy_graph, write_graphs
from export.repository import write_json, write_manifest, write_version
from export.verify import (
    SIZE_NAMES,
    SIZES,
    TOLERANCE,
    largest_error,
    load_runtime,
    verify_graphs,
    verify_layer,
)
from model.attention import MultiHeadAttention
from model.contract import DECOMPOSED, GRAPHS, VERIFICATION_FILE


def export_module(
    module: nn.Module,
    models: str | Path,
    *,
    name: str,
    on_step: Callable[[str], None] = lambda _: None,
) -> Path:
    """Export an attention layer, verify it against float64, and put it into a repository.

    Args:
        module: a `MultiHeadAttention` or a ``torch.nn.MultiheadAttention``; it is copied, so
            training can go on.
        models: the repository, a directory; made if absent.
        name: of the model: letters, digits, '_', '.' and '-'.
        on_step: called after each of `export.progress.STEPS` steps with what was done.

    Returns:
        The directory of the new version.

    Raises:
        TypeError: if `module` is of another class.
        ValueError: if a weight holds NaN or an infinity, or the layer adds keys of its own.
        RepositoryError: if the name is unfit, `models` is not a directory, or the model exists
            with other sizes.
        VerificationError: if the layer or a graph misses the tolerance.
    """
    layer = to_layer(module)

    def fill(directory: Path) -> None:
        write_files(layer, directory, on_step)

    return write_version(Path(models), name, layer.spec, fill)


def write_files(layer: MultiHeadAttention, directory: Path, on_step: Callable[[str], None]) -> None:
    """Write graphs, weights, verification and manifest of `layer` into an empty directory.

    Raises:
        VerificationError: if the layer or a graph misses the tolerance.
    """
    weights = layer.to_weights()
    verify_layer(layer, weights)
    protos = {}
    for graph in GRAPHS:
        protos[graph.file] = trace_graph(layer, graph)
        tidy_graph(protos[graph.file], layer.spec, weights)
        on_step(f"traced {graph.name}")
    write_graphs(protos, directory)
    errors = verify_graphs(directory, weights, lambda graph: on_step(f"verified {graph.name}"))
    record = {
        "versions": read_versions(),
        "attention": layer.spec.to_properties(),
        "sizes": [dict(zip(SIZE_NAMES, sizes, strict=True)) for sizes in SIZES],
        "hidings": list(errors[DECOMPOSED.name]),
        "tolerance": TOLERANCE,
        "largest_error": errors,
    }
    write_json(directory / VERIFICATION_FILE, record)
    write_manifest(directory, layer.spec)


def read_largest_error(directory: Path) -> float:
    """The largest error that verification found in a version's directory."""
    record = json.loads((directory / VERIFICATION_FILE).read_bytes())
    return largest_error(record["largest_error"])


def to_layer(module: nn.Module) -> MultiHeadAttention:
    """A float32 copy of the layer on the CPU, in evaluation mode.

    Raises:
        TypeError: if `module` is neither of the two classes.
    """
    # Not of a subclass with a forward of its own, which may compute something else.
    plain = type(module).forward is nn.MultiheadAttention.forward
    if isinstance(module, nn.MultiheadAttention) and plain:
        module = MultiHeadAttention.from_torch(module)
    if not isinstance(module, MultiHeadAttention):
        raise TypeError(
            f"module is a {type(module).__name__}, expected model.MultiHeadAttention "
            "or torch.nn.MultiheadAttention; of a class with the same four maps, save the "
            "state_dict and use limelight-export checkpoint"
        )
    return copy.deepcopy(module).cpu().float().eval()


def read_versions() -> dict[str, str]:
    """Versions of what wrote and ran the graphs."""
    return {
        package: importlib.metadata.version(package)
        for package in ("limelight", "torch", "onnx", "onnxscript", "numpy")
        # Not by distribution: that of onnxruntime is one of two.
    } | {"onnxruntime": load_runtime().__version__}
