"""Families that are recognised so that they are refused by name: the formula cannot say them."""

import re
from collections.abc import Callable, Iterable
from typing import NoReturn

from export.checkpoints.config import Config
from export.checkpoints.family import Family, find_prefixes
from export.checkpoints.tensors import Tensors
from export.errors import CheckpointError

ROTATES = "rotates queries and keys by their positions"
UNSCALED = "does not divide its scores by sqrt(d_k)"
RELATIVE = "adds learned relative positions to the scores"


def refuse(name: str, maps: str, find: Callable[[Iterable[str]], set[str]], reason: str) -> Family:
    """A family whose layers are found and never read.

    Args:
        name: of networks that have it.
        maps: the names that tell a layer of it.
        find: as in `Family`.
        reason: what a layer does that the formula does not.
    """

    def read(tensors: Tensors, _: Config) -> NoReturn:
        raise CheckpointError(
            f"layer {tensors.prefix.rstrip('.')!r} of {tensors.file!r} is of the family {name}, "
            f"which {reason}{describe_keys(tensors)}; expected a layer that computes "
            "softmax(q k^T / sqrt(d_k)) v alone"
        )

    return Family(name, maps, find, read)


def describe_keys(tensors: Tensors) -> str:
    """What names and shapes tell besides: fewer heads of keys, and norms of queries and keys."""
    maps = ("q_proj.weight", "k_proj.weight")
    also = ""
    if all(name in tensors for name in maps):
        (queries, _), (keys, _) = (tensors.read_shape(name) for name in maps)
        if keys < queries:
            also += f", shares heads of keys among its queries ({keys} rows for {queries})"
    if "q_norm.weight" in tensors:
        also += ", normalizes queries and keys"
    return also


def find_llama(names: Iterable[str]) -> set[str]:
    """Layers with ``q_proj`` whose output is called ``o_proj`` or ``dense``."""
    return find_prefixes(names, "q_proj.weight") & find_prefixes(
        names, "o_proj.weight", "dense.weight"
    )


def find_gptj(names: Iterable[str]) -> set[str]:
    """Layers called ``attn`` with ``q_proj``."""
    return {prefix for prefix in find_prefixes(names, "q_proj.weight") if ends(prefix, "attn")}


def find_gpt_neo(names: Iterable[str]) -> set[str]:
    """Layers called ``attn.attention``."""
    prefixes = find_prefixes(names, "q_proj.weight")
    return {prefix for prefix in prefixes if ends(prefix, r"attn\.attention")}


def find_t5(names: Iterable[str]) -> set[str]:
    """Layers such as ``encoder.block.0.layer.0.SelfAttention``."""
    prefixes = find_prefixes(names, "q.weight", "k.weight", "v.weight")
    return {prefix for prefix in prefixes if ends(prefix, "(Self|EncDec)Attention")}


def find_mpnet(names: Iterable[str]) -> set[str]:
    """Layers such as ``encoder.layer.0.attention``, whose maps are ``attn.q`` and so on."""
    maps = [f"attention.attn.{name}.weight" for name in "qkv"]
    return {f"{prefix}.attention".strip(".") for prefix in find_prefixes(names, *maps)}


def ends(prefix: str, pattern: str) -> bool:
    """Whether the last parts of a prefix fit."""
    return re.fullmatch(rf"(.+\.)?{pattern}", prefix) is not None


REFUSED = (
    refuse("LLaMA, Mistral, Qwen, Phi, DINOv3", "q_proj with o_proj or dense", find_llama, ROTATES),
    refuse("GPT-J, EVA-02", "attn.q_proj", find_gptj, ROTATES),
    refuse("GPT-Neo", "attn.attention.q_proj", find_gpt_neo, UNSCALED),
    refuse(
        "T5, mT5, UL2",
        "SelfAttention.q, EncDecAttention.q",
        find_t5,
        f"{UNSCALED} and {RELATIVE}",
    ),
    refuse(
        "GPT-NeoX, BLOOM, Falcon, Megatron",
        "query_key_value",
        lambda names: find_prefixes(names, "query_key_value.weight"),
        "keeps query, key and value of each head side by side in one matrix, and tells positions "
        "to its scores (rotations, ALiBi)",
    ),
    refuse(
        "DeBERTa",
        "self.query_proj or self.in_proj",
        lambda names: find_prefixes(names, "self.query_proj.weight", "self.in_proj.weight"),
        RELATIVE,
    ),
    refuse("MPNet", "attention.attn.q", find_mpnet, RELATIVE),
    refuse(
        "ModernBERT, MPT",
        "Wqkv",
        lambda names: find_prefixes(names, "Wqkv.weight"),
        "tells positions to its scores (rotations, ALiBi)",
    ),
)
