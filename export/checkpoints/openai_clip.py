"""The transformers of OpenAI's CLIP, https://github.com/openai/CLIP, and of open_clip."""

import re
from collections.abc import Iterable

from export.checkpoints import torch_layer
from export.checkpoints.config import Config
from export.checkpoints.family import Family
from export.checkpoints.tensors import Tensors
from export.errors import CheckpointError
from model.weights import Weights

OPENAI_HEAD_WIDTH = 64  # CLIP/clip/model.py: heads = width // 64


def find(names: Iterable[str]) -> set[str]:
    """Layers such as ``visual.transformer.resblocks.3.attn``."""
    prefixes = torch_layer.find(names)
    return {prefix for prefix in prefixes if re.fullmatch(r"(.+\.)?resblocks\.\d+\.attn", prefix)}


def read(tensors: Tensors, config: Config) -> Weights:
    """Read a ``torch.nn.MultiheadAttention``, whose number of heads no file tells.

    Raises:
        CheckpointError: if a tensor is missing, unfit or unknown, or the number of heads is not
            given.
    """
    if not config.tells_num_heads():
        _, d_model = tensors.read_shape("in_proj_weight")
        raise CheckpointError(
            f"{tensors.file!r} does not tell the number of heads; give --num-heads: OpenAI's own "
            f"models have d_model / {OPENAI_HEAD_WIDTH}, here {d_model / OPENAI_HEAD_WIDTH:g}, "
            "those of open_clip may have others"
        )
    return torch_layer.read(tensors, config)


OPENAI_CLIP = Family("OpenAI CLIP, open_clip", "resblocks.*.attn.in_proj_weight", find, read)
