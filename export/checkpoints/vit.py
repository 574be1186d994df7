"""The vision transformers of Hugging Face: ViT, DeiT, DINOv2 and those that share their names."""

from collections.abc import Iterable

from export.checkpoints.config import Config
from export.checkpoints.family import Family, find_prefixes
from export.checkpoints.linear_maps import read_linear_maps
from export.checkpoints.settings import check_model_type
from export.checkpoints.tensors import Tensors
from model.weights import Weights

TYPES = (
    "audio-spectrogram-transformer",
    "deit",
    "dinov2",
    "dinov2_with_registers",
    "dpt",
    "ijepa",
    "vit",
    "vit_mae",
    "vit_msn",
    "vivit",
    "yolos",
)
INNER = "attention.attention"


def find(names: Iterable[str]) -> set[str]:
    """Layers such as ``encoder.layer.3.attention``, whose maps are in an ``attention`` again."""
    maps = [f"{INNER}.{name}.weight" for name in ("query", "key", "value")]
    return {f"{prefix}.attention".strip(".") for prefix in find_prefixes(names, *maps)}


def read(tensors: Tensors, config: Config) -> Weights:
    """Read ``attention.query``, ``attention.key``, ``attention.value`` and ``output.dense``.

    Raises:
        CheckpointError: if a tensor is missing, unfit or unknown, as is the table of relative
            positions of BEiT, or if ``config.json`` tells of another network.
    """
    check_model_type(config, TYPES)
    return read_linear_maps(
        tensors,
        config,
        query="attention.query",
        key="attention.key",
        value="attention.value",
        output="output.dense",
    )


VIT = Family(
    "ViT, DeiT, DINOv2",
    "attention.query, attention.key, attention.value, output.dense",
    find,
    read,
)
