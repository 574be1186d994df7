"""Layers that compute more than the formula: refused by the tensor that tells it."""

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from export.checkpoints.checkpoint import read_checkpoint
from export.errors import CheckpointError
from model.attention import MultiHeadAttention

D, H = 12, 3
LAYER = "esm.encoder.layer.1.attention"
State = dict[str, Tensor]

OURS: State = MultiHeadAttention(D, H).state_dict()
TORCH: State = nn.MultiheadAttention(D, H).state_dict()
BERT: State = {
    f"{LAYER}.{name}.{part}": torch.zeros(shape)
    for name in ("self.query", "self.key", "self.value", "output.dense")
    for part, shape in (("weight", (D, D)), ("bias", (D,)))
}
STATES = {"ours": OURS, "torch": TORCH, "bert": BERT}

ROTATES = "rotates queries and keys by their positions"
RELATIVE = "adds relative positions to the scores"
NORMALIZES = "normalizes within the layer"
ADDS = "adds to the maps"
SCALES = "scales the scores"
OTHER = "is none of the four maps"


def refuse(state: State, folder: Path) -> str:
    """The text with which a checkpoint is refused."""
    torch.save(state, folder / "x.pt")
    with pytest.raises(CheckpointError) as caught:
        read_checkpoint(folder / "x.pt", num_heads=H)
    return str(caught.value)


@pytest.mark.parametrize(
    ("family", "name", "effect"),
    [
        ("bert", f"{LAYER}.self.rotary_embeddings.inv_freq", ROTATES),
        ("bert", f"{LAYER}.self.relative_position_bias_table", RELATIVE),
        ("bert", f"{LAYER}.self.distance_embedding.weight", RELATIVE),
        (
            "bert",
            f"{LAYER}.self.query_global.weight",
            "projects some tokens with maps of their own",
        ),
        ("bert", f"{LAYER}.self.LayerNorm.weight", NORMALIZES),
        ("bert", f"{LAYER}.self.query.lora_A", ADDS),
        ("bert", f"{LAYER}.self.conv.weight", OTHER),
        ("bert", f"{LAYER}.output.adapters.x.weight", ADDS),
        ("ours", "q_norm.weight", NORMALIZES),
        ("ours", "rotary.inv_freq", ROTATES),
        ("ours", "rel_pos.weight", RELATIVE),
        ("ours", "temperature", SCALES),
        ("ours", "bias_k", "adds a learned key to every sequence (add_bias_kv)"),
        ("ours", "q_bias", "is a bias under another name than its map"),
        ("ours", "gru_rel_pos_const", RELATIVE),
        ("ours", "gate.weight", OTHER),
        ("ours", "W_o.weight", OTHER),
        ("torch", "ln_inner.weight", NORMALIZES),
        ("torch", "logit_scale", SCALES),
        ("torch", "k_proj_weight", OTHER),
    ],
)
def test_a_tensor_that_may_change_the_layer_is_refused_with_what_it_does(
    family: str, name: str, effect: str, tmp_path: Path
) -> None:
    assert refuse(STATES[family] | {name: torch.zeros(4)}, tmp_path) == (
        f"tensor '{name}' of 'x.pt' {effect}; expected a layer that computes the formula alone, "
        "or a file without the tensor if the attention does not use it"
    )


@pytest.mark.parametrize(
    ("family", "name"),
    [
        ("bert", f"{LAYER}.output.LayerNorm.weight"),
        ("bert", f"{LAYER}.output.LayerNorm.beta"),
        ("bert", f"{LAYER}.LayerNorm.weight"),
        ("bert", f"{LAYER}.self_attn_layer_norm.bias"),
        ("bert", f"{LAYER}.self.position_ids"),
        ("bert", "esm.encoder.layer.1.output.dense.weight"),
        ("bert", "esm.embeddings.position_ids"),
        ("ours", "norm.weight"),
        ("ours", "layer_norm.bias"),
        ("ours", "mask"),
        ("torch", "tril"),
        ("torch", "attn_mask"),
    ],
)
def test_what_stands_around_the_attention_is_left_out(
    family: str, name: str, tmp_path: Path
) -> None:
    torch.save(STATES[family] | {name: torch.zeros(4)}, tmp_path / "x.pt")
    assert read_checkpoint(tmp_path / "x.pt", num_heads=H).spec.d_model == D


@pytest.mark.parametrize("family", STATES)
def test_a_layer_does_not_answer_for_its_neighbours(family: str, tmp_path: Path) -> None:
    state = {f"net.1.{name}": tensor for name, tensor in STATES[family].items()}
    others = {"net.10.q_norm.weight": torch.zeros(4), "net.rotary.inv_freq": torch.zeros(4)}
    torch.save(state | others, tmp_path / "x.pt")
    assert read_checkpoint(tmp_path / "x.pt", num_heads=H).spec.d_model == D
