"""Families that the formula cannot say: found, and refused by name with the reason."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

from export.checkpoints.config import Config
from export.checkpoints.detect import FAMILIES, find_layers
from export.checkpoints.refused import REFUSED
from export.checkpoints.tensors import Tensors, hold_tensors
from export.errors import CheckpointError

D, KEYS = 12, 4
ROTATES = "rotates queries and keys by their positions"
UNSCALED = "does not divide its scores by sqrt(d_k)"
RELATIVE = "adds learned relative positions to the scores"
PACKED = (
    "keeps query, key and value of each head side by side in one matrix, and tells positions to "
    "its scores (rotations, ALiBi)"
)
LLAMA = "LLaMA, Mistral, Qwen, Phi, DINOv3"
NEOX = "GPT-NeoX, BLOOM, Falcon, Megatron"


def hold(**tensors: Tensor) -> Tensors:
    return hold_tensors("x.pt", tensors)


def refuse(tensors: Tensors) -> str:
    """The text with which the only layer is refused."""
    (found,) = find_layers(tensors)
    assert found.family in REFUSED
    with pytest.raises(CheckpointError) as caught:
        found.family.read(tensors, Config(Path("x.pt")), found.layer)
    return str(caught.value)


@pytest.mark.parametrize(
    ("layer", "names", "family", "reason"),
    [
        ("model.layers.1.self_attn", "q_proj k_proj v_proj o_proj", LLAMA, ROTATES),
        ("model.layers.1.self_attn", "q_proj k_proj v_proj dense", LLAMA, ROTATES),
        ("layer.1.attention", "q_proj k_proj v_proj o_proj", LLAMA, ROTATES),
        ("transformer.h.1.attn", "q_proj k_proj v_proj out_proj", "GPT-J, EVA-02", ROTATES),
        ("blocks.1.attn", "q_proj k_proj v_proj proj", "GPT-J, EVA-02", ROTATES),
        ("h.1.attn.attention", "q_proj k_proj v_proj out_proj", "GPT-Neo", UNSCALED),
        (
            "encoder.block.1.layer.0.SelfAttention",
            "q k v o",
            "T5, mT5, UL2",
            f"{UNSCALED} and {RELATIVE}",
        ),
        (
            "decoder.block.1.layer.1.EncDecAttention",
            "q k v o",
            "T5, mT5, UL2",
            f"{UNSCALED} and {RELATIVE}",
        ),
        ("gpt_neox.layers.1.attention", "query_key_value dense", NEOX, PACKED),
        ("transformer.h.1.self_attention", "query_key_value dense", NEOX, PACKED),
        ("encoder.layer.1.attention", "self.query_proj self.key_proj", "DeBERTa", RELATIVE),
        ("encoder.layer.1.attention", "self.in_proj output.dense", "DeBERTa", RELATIVE),
        ("encoder.layer.1.attention", "attn.q attn.k attn.v attn.o", "MPNet", RELATIVE),
        (
            "model.layers.1.attn",
            "Wqkv Wo",
            "ModernBERT, MPT",
            "tells positions to its scores (rotations, ALiBi)",
        ),
    ],
)
def test_a_layer_is_refused_by_its_family_with_the_reason(
    layer: str, names: str, family: str, reason: str
) -> None:
    tensors = {f"{layer}.{name}.weight": torch.zeros(D, D) for name in names.split()}
    assert refuse(hold(**tensors)) == (
        f"layer '{layer}' of 'x.pt' is of the family {family}, which {reason}; expected a layer "
        "that computes softmax(q k^T / sqrt(d_k)) v alone"
    )


def test_fewer_heads_of_keys_and_norms_are_told_too() -> None:
    widths = {"q_proj": D, "k_proj": KEYS, "v_proj": KEYS, "o_proj": D}
    tensors = {f"a.{name}.weight": torch.zeros(width, D) for name, width in widths.items()}
    norms = {"a.q_norm.weight": torch.zeros(KEYS), "a.k_norm.weight": torch.zeros(KEYS)}
    assert refuse(hold(**tensors, **norms)) == (
        f"layer 'a' of 'x.pt' is of the family {LLAMA}, which {ROTATES}, shares heads of keys "
        "among its queries (4 rows for 12), normalizes queries and keys; expected a layer that "
        "computes softmax(q k^T / sqrt(d_k)) v alone"
    )


def test_a_family_is_either_read_or_refused() -> None:
    names = [family.name for family in (*FAMILIES, *REFUSED)]
    assert len(set(names)) == len(names)
