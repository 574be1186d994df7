"""`read_checkpoint`: a file becomes the weights of one attention layer."""

from pathlib import Path

from export.checkpoints.config import Config
from export.checkpoints.detect import detect
from export.checkpoints.files import open_tensors
from model.weights import Weights


def read_checkpoint(
    path: Path, *, layer: str | None = None, num_heads: int | None = None
) -> Weights:
    """Read one attention layer.

    Args:
        path: a ``.safetensors`` file, or ``.pt``, ``.pth`` or ``.bin`` with tensors alone.
        layer: dotted prefix of the layer; may be left out where the file holds one only.
        num_heads: H; read from ``config.json`` beside the file unless given.

    Returns:
        The layer in float32, which holds bfloat16 and float16 exactly.

    Raises:
        CheckpointError: naming the file, tensor or setting that is missing or unfit.
    """
    tensors = open_tensors(path)
    found = detect(tensors, layer)
    return found.family.read(tensors, Config(path, num_heads), found.layer)
