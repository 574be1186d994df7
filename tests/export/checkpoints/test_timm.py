"""Layers with the names of a ViT's whose neighbours tell that they are not plain."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

from export.checkpoints.checkpoint import read_checkpoint
from export.errors import CheckpointError

D, H = 12, 3
State = dict[str, Tensor]


def make_layer(prefix: str) -> State:
    return {
        f"{prefix}.qkv.weight": torch.zeros(3 * D, D),
        f"{prefix}.proj.weight": torch.zeros(D, D),
    }


def read(state: State, folder: Path) -> int:
    torch.save(state, folder / "x.pt")
    return read_checkpoint(folder / "x.pt", num_heads=H).spec.d_model


def refuse(state: State, folder: Path) -> str:
    with pytest.raises(CheckpointError) as caught:
        read(state, folder)
    return str(caught.value)


@pytest.mark.parametrize("prefix", ["", "backbone."])
def test_patches_without_embedded_positions_tell_of_positions_in_the_scores(
    prefix: str, tmp_path: Path
) -> None:
    patches = {f"{prefix}patch_embed.proj.weight": torch.zeros(D, 3, 4, 4)}
    network = make_layer(f"{prefix}blocks.1.attn") | patches
    assert refuse(network, tmp_path) == (
        f"layer '{prefix}blocks.1.attn' of 'x.pt' has '{prefix}patch_embed.proj.weight' before it "
        f"but no '{prefix}pos_embed', so that its scores tell positions; expected one of a ViT "
        "whose positions are embedded"
    )
    assert read(network | {f"{prefix}pos_embed": torch.zeros(1, 5, D)}, tmp_path) == D


def test_the_scales_of_eva_and_beit_tell_of_positions_in_the_scores(tmp_path: Path) -> None:
    layer = make_layer("blocks.1.attn")
    assert refuse(layer | {"blocks.1.gamma_1": torch.zeros(D)}, tmp_path) == (
        "layer 'blocks.1.attn' of 'x.pt' has 'blocks.1.gamma_1' beside it, as in EVA and BEiT, "
        "which tell positions to their scores; expected one of a ViT whose positions are embedded"
    )
    assert read(layer | {"blocks.1.ls1.gamma": torch.zeros(D)}, tmp_path) == D


def test_networks_of_stages_are_refused(tmp_path: Path) -> None:
    """The other half of DaViT's layers attends across channels, with the same names and shapes."""
    assert refuse(make_layer("stages.0.blocks.0.1.attn"), tmp_path) == (
        "layer 'stages.0.blocks.0.1.attn' of 'x.pt' is in a network of stages, whose layers attend "
        "within windows or across channels; expected one of a ViT whose positions are embedded"
    )


@pytest.mark.parametrize("prefix", ["blocks.1.attn", "net.blocks.0.1.attn", "encoder.attn"])
def test_a_layer_without_such_neighbours_is_read(prefix: str, tmp_path: Path) -> None:
    assert read(make_layer(prefix), tmp_path) == D
