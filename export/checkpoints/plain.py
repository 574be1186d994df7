"""Refusal of layers that hold more than the formula computes with."""

import re
from collections.abc import Collection

from export.checkpoints.tensors import Tensors
from export.errors import CheckpointError

# Around the attention, or what a request says anew: norms before and after, masks, positions.
HARMLESS = re.compile(
    r"(output\.)?(LayerNorm|layernorm|layer_norm|self_attn_layer_norm|norm)\.\w+"
    r"|(self\.)?(mask|attn_mask|causal_mask|tril|position_ids)"
)
# What a part of a name tells of the tensor; the first that fits.
EFFECTS = {
    r"\bbias_[kv]$": "adds a learned key to every sequence (add_bias_kv)",
    r"\b[qv]_bias$": "is a bias under another name than its map",
    r"rotary|rope|inv_freq": "rotates queries and keys by their positions",
    r"relative|rel_pos|rel_attn|distance": "adds relative positions to the scores",
    r"global": "projects some tokens with maps of their own",
    r"lora|adapter": "adds to the maps",
    r"norm|ln_": "normalizes within the layer",
    r"logit_scale|temperature": "scales the scores",
    r"": "is none of the four maps",
}


def name_parts(*maps: str) -> list[str]:
    """Names of the tensors of linear maps."""
    return [f"{name}.{part}" for name in maps for part in ("weight", "bias")]


def check_plain(tensors: Tensors, known: Collection[str]) -> None:
    """Refuse a layer with a tensor that may change what it computes.

    That is every tensor at or below the layer's prefix, in submodules of any name too, that is
    neither read nor known to be harmless: a file does not tell what its tensors are for, and
    what the layer does with an unknown one would be missing from the verified graphs. Rotations
    and scales that leave no tensor in the file cannot be seen here.

    Args:
        tensors: of the layer.
        known: names of those that are read.

    Raises:
        CheckpointError: naming the tensor and what it does.
    """
    for name in tensors.list_names():
        if name in known or HARMLESS.fullmatch(name):
            continue
        effect = next(text for part, text in EFFECTS.items() if re.search(part, name.lower()))
        raise CheckpointError(
            f"tensor {tensors.prefix + name!r} of {tensors.file!r} {effect}; expected a layer "
            "that computes the formula alone, or a file without the tensor if the attention does "
            "not use it"
        )
