"""`export_module`: a live PyTorch layer becomes a model that the server loads."""

import copy
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from torch import nn

from export.example import Example, write_example
from export.repository import NewVersion, write_versions
from export.template import trace_template
from export.verify import verify_layer
from export.version import fill_version
from model.attention import MultiHeadAttention
from model.contract import Precision


def export_module(
    module: nn.Module,
    models: str | Path,
    *,
    name: str,
    on_step: Callable[[str], None] = lambda _: None,
    example: Example | None = None,
    precision: Precision = "fp32",
) -> Path:
    """Export an attention layer, verify it against float64, and put it into a repository.

    Args:
        module: a `MultiHeadAttention` or a ``torch.nn.MultiheadAttention``; it is copied, so
            training can go on.
        models: the repository, a directory; made if absent.
        name: of the model: letters, digits, '_', '.' and '-'.
        on_step: called after each of `export.progress.count_steps()` steps with what was done.
        example: what the page shows first; random tensors unless given.
        precision: in what the model stores and multiplies; "fp16" halves it, for CUDA.

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
    layer.spec = replace(layer.spec, precision=precision)

    def fill(directory: Path) -> None:
        weights = layer.to_weights()
        verify_layer(layer, weights)
        template = trace_template(layer, on_step)
        fill_version(directory, template, lambda: (weights, None), on_step)
        if example is not None:
            write_example(directory, example)

    (directory,) = write_versions(Path(models), [NewVersion(name, layer.spec, fill)])
    return directory


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
