"""timm's vision transformers, and DINO's and DINOv2's own checkpoints."""

import re
from collections.abc import Iterable

from export.checkpoints.config import Config
from export.checkpoints.family import Family, find_prefixes
from export.checkpoints.packed import join_maps, read_maps
from export.checkpoints.plain import check_plain, name_parts
from export.checkpoints.settings import check_architecture, check_model_type
from export.checkpoints.tensors import Tensors
from export.errors import CheckpointError
from model.weights import Weights

TYPES = ("timm_wrapper",)
# Of timm's names those whose attention is plain; others of them rotate or add relative positions.
ARCHITECTURES = re.compile(r"(?!.*(rope|relpos|dinov3|_pe_))(vit|deit3?|flexivit)_")


def find(names: Iterable[str]) -> set[str]:
    """Layers such as ``blocks.3.attn``, or a file of one."""
    prefixes = find_prefixes(names, "qkv.weight")
    return {prefix for prefix in prefixes if prefix.rpartition(".")[2] in ("", "attn")}


def read(tensors: Tensors, config: Config) -> Weights:
    """Read ``qkv``, which holds query, key and value in turn, and ``proj``.

    Raises:
        CheckpointError: if a tensor is missing, unfit or unknown, as are those of Swin's relative
            positions and of norms of queries and keys, or if something tells of rotations.
    """
    check_model_type(config, TYPES)
    check_architecture(config, ARCHITECTURES)
    _, d_model = tensors.read_shape("qkv.weight")
    spec = config.make_spec(d_model, d_model, d_model)
    query, key, value = read_maps(tensors, "qkv", d_model, d_model, count=3)
    (output,) = read_maps(tensors, "proj", d_model, d_model, count=1)
    check_plain(tensors, name_parts("qkv", "proj"))
    check_network(tensors)
    return join_maps(spec, query, key, value, output)


def check_network(tensors: Tensors) -> None:
    """Refuse a layer whose neighbours tell that it is not the plain one of a ViT.

    RoPE leaves no tensor of its own.

    Raises:
        CheckpointError: naming what tells it.
    """
    network, in_blocks, _ = f".{tensors.prefix}".partition(".blocks.")
    root = f"{network[1:]}." if network else ""
    scale = tensors.prefix.removesuffix("attn.") + "gamma_1"
    patches, positions = f"{root}patch_embed.proj.weight", f"{root}pos_embed"
    if "stages" in tensors.prefix.split("."):
        fault = "is in a network of stages, whose layers attend within windows or across channels"
    elif scale in tensors.names:
        fault = f"has {scale!r} beside it, as in EVA and BEiT, which tell positions to their scores"
    elif in_blocks and patches in tensors.names and positions not in tensors.names:
        fault = f"has {patches!r} before it but no {positions!r}, so that its scores tell positions"
    else:
        return
    raise CheckpointError(
        f"layer {tensors.prefix.rstrip('.')!r} of {tensors.file!r} {fault}; expected one of a ViT "
        "whose positions are embedded"
    )


TIMM = Family("timm ViT, DeiT, DINO", "attn.qkv, attn.proj", find, read)
