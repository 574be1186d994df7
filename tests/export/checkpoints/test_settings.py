"""Networks that compute more than the formula: refused by the setting that tells it."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from export.checkpoints import bart, bert, distilbert, gpt2, timm, vit
from export.checkpoints.checkpoint import read_checkpoint
from export.checkpoints.settings import UNLIKE
from export.errors import CheckpointError

D, H = 12, 3
State = dict[str, Tensor]


def name_maps(*names: str, prefix: str) -> State:
    """Square maps of zeros."""
    return {f"{prefix}.{name}.weight": torch.zeros(D, D) for name in names}


STATES: dict[str, State] = {
    "bert": name_maps(
        "self.query", "self.key", "self.value", "output.dense", prefix="layer.1.attention"
    ),
    "vit": name_maps(
        *(f"attention.{name}" for name in ("query", "key", "value")),
        "output.dense",
        prefix="layer.1.attention",
    ),
    "distilbert": name_maps("q_lin", "k_lin", "v_lin", "out_lin", prefix="layer.1.attention"),
    "bart": name_maps("q_proj", "k_proj", "v_proj", "out_proj", prefix="layers.1.self_attn"),
    "gpt2": name_maps("c_proj", prefix="h.1.attn")
    | {"h.1.attn.c_attn.weight": torch.zeros(D, 3 * D)},
    "timm": name_maps("proj", prefix="blocks.1.attn")
    | {"blocks.1.attn.qkv.weight": torch.zeros(3 * D, D)},
}
TYPES = {
    "bert": bert.TYPES,
    "vit": vit.TYPES,
    "distilbert": distilbert.TYPES,
    "bart": bart.TYPES,
    "gpt2": gpt2.TYPES,
    "timm": timm.TYPES,
}


def read(family: str, config: dict[str, Any], folder: Path) -> int:
    """The number of heads of a layer beside a ``config.json``."""
    (folder / "config.json").write_text(json.dumps(config))
    torch.save(STATES[family], folder / "x.pt")
    return read_checkpoint(folder / "x.pt", num_heads=H).spec.num_heads


def refuse(family: str, config: dict[str, Any], folder: Path) -> str:
    """The text with which it is refused."""
    with pytest.raises(CheckpointError) as caught:
        read(family, config, folder)
    return str(caught.value)


@pytest.mark.parametrize(
    ("family", "name", "value", "expected"),
    [
        ("bert", "position_embedding_type", "relative_key_query", "'absolute'"),
        ("bert", "position_embedding_type", "rotary", "'absolute'"),
        ("bert", "position_embedding_type", None, "'absolute'"),
        ("bert", "attention_type", "block_sparse", "'original_full'"),
        ("gpt2", "scale_attn_weights", False, "True"),
        ("gpt2", "scale_attn_by_inverse_layer_idx", True, "False"),
    ],
)
def test_a_setting_that_the_formula_does_not_have_is_refused(
    family: str, name: str, value: object, expected: str, tmp_path: Path
) -> None:
    assert refuse(family, {name: value}, tmp_path) == (
        f"config.json says {name} is {value!r}, which the formula does not have; "
        f"expected {expected}"
    )


@pytest.mark.parametrize("kind", UNLIKE)
@pytest.mark.parametrize("family", STATES)
def test_a_network_that_is_known_to_do_more_is_refused_with_what_it_does(
    family: str, kind: str, tmp_path: Path
) -> None:
    assert refuse(family, {"model_type": kind}, tmp_path) == (
        f"config.json says model_type is '{kind}', which {UNLIKE[kind]}; expected a network that "
        "computes the formula alone"
    )


@pytest.mark.parametrize("kind", ["unheard-of", ["bert"]], ids=str)
@pytest.mark.parametrize("family", STATES)
def test_a_network_of_an_unknown_type_is_not_taken_for_another(
    family: str, kind: object, tmp_path: Path
) -> None:
    assert refuse(family, {"model_type": kind}, tmp_path) == (
        f"config.json says model_type is {kind!r}, of which it is not known whether it computes "
        f"the formula alone; expected one of {', '.join(TYPES[family])}; if it does, take "
        "model_type out of config.json"
    )


@pytest.mark.parametrize(
    ("family", "kind"), [(family, kind) for family in TYPES for kind in TYPES[family]]
)
def test_networks_that_are_known_to_be_plain_pass(family: str, kind: str, tmp_path: Path) -> None:
    assert read(family, {"model_type": kind}, tmp_path) == H


def test_the_settings_of_plain_attention_pass(tmp_path: Path) -> None:
    config = {"position_embedding_type": "absolute", "attention_type": "original_full"}
    assert read("bert", config, tmp_path) == H


@pytest.mark.parametrize(
    "name", ["vit_tiny_patch16_224", "vit_small_patch14_dinov2", "deit3_base_patch16_224"]
)
def test_architectures_of_timm_that_are_plain_pass(name: str, tmp_path: Path) -> None:
    assert read("timm", {"architecture": name}, tmp_path) == H


@pytest.mark.parametrize(
    "name",
    [
        "vit_small_patch16_dinov3",
        "vit_small_patch16_rope_224",
        "vit_relpos_small_patch16_224",
        "vit_pe_core_tiny_patch16_384",
        "eva02_tiny_patch14_224",
        "swin_tiny_patch4_window7_224",
        7,
    ],
)
def test_another_architecture_of_timm_is_refused(name: object, tmp_path: Path) -> None:
    assert refuse("timm", {"architecture": name}, tmp_path) == (
        f"config.json says architecture is {name!r}, of which it is not known whether it computes "
        "the formula alone, as vit_base_patch16_224 does; if it does, take architecture out of "
        "config.json"
    )
