"""Networks whose attention is more than the formula, from their libraries: refused by name."""

from pathlib import Path
from typing import Any

import pytest

from export.checkpoints.config import Config
from export.checkpoints.detect import find_layers
from export.checkpoints.files import open_tensors
from export.errors import CheckpointError
from tests.families import timm_networks
from tests.families.network import D, H, save_state
from tests.families.transformers_networks import SIZES, SOUNDS, WORDS, make, save_pretrained

pytestmark = pytest.mark.families

ROTATES = "rotates queries and keys by their positions"
UNSCALED = "does not divide its scores by sqrt(d_k)"
RELATIVE = "adds relative positions to the scores"
LEARNED = "adds learned relative positions to the scores"
UNLIKE_BIAS = "is a bias under another name than its map"
INTERLEAVED = "keeps query, key and value of each head side by side in one matrix"
SMALL = {"n_embd": D, "n_layer": 1, "n_head": H, "n_positions": 20}

NETWORKS: dict[str, tuple[dict[str, Any], str]] = {
    "T5": ({"d_model": D, "d_kv": 4, "num_heads": H, "num_layers": 1, "d_ff": 16}, UNSCALED),
    "Llama": (SIZES | {"num_key_value_heads": 1}, "shares heads of keys among its queries"),
    "Qwen3": (SIZES | {"head_dim": 4, "num_key_value_heads": H}, "normalizes queries and keys"),
    "Phi": (SIZES, ROTATES),
    "GPTNeoX": (SIZES, INTERLEAVED),
    "Bloom": ({"hidden_size": D, "n_layer": 1, "n_head": H}, INTERLEAVED),
    "Falcon": (SIZES, INTERLEAVED),
    "GPTJ": (SMALL | {"rotary_dim": 2}, ROTATES),
    "GPTNeo": (
        {
            "hidden_size": D,
            "num_layers": 1,
            "num_heads": H,
            "attention_types": [[["global"], 1]],
        },
        UNSCALED,
    ),
    "GPTBigCode": (SMALL, "shares one head of keys among its queries"),
    "DINOv3ViT": (SIZES | {"image_size": 8, "patch_size": 4}, ROTATES),
    "Beit": (SIZES | {"image_size": 8, "patch_size": 4}, "may add relative positions"),
    "DebertaV2": (SIZES, LEARNED),
    "MPNet": (SIZES, LEARNED),
    "WavLM": (SIZES | SOUNDS, RELATIVE),
    "ModernBert": (SIZES, "tells positions to its scores"),
}
WORDLESS = ("DINOv3ViT", "Beit", "WavLM")
BY_SHAPE = {"GPTBigCode": "as the Conv1D of GPT-2 stores it"}
ANY_HEADS = 1  # divides every width


def refuse_all(file: Path) -> set[str]:
    """The texts with which the layers of a file are refused; there must be one."""
    texts = set()
    with open_tensors(file) as tensors:
        for found in find_layers(tensors):
            with pytest.raises(CheckpointError) as caught:
                found.family.read(tensors, Config(file, ANY_HEADS), found.layer)
            texts.add(str(caught.value))
    assert texts
    return texts


@pytest.mark.parametrize("name", NETWORKS)
def test_every_layer_of_another_network_is_refused_with_the_reason(
    name: str, tmp_path: Path
) -> None:
    file = save(name, tmp_path)
    assert all(NETWORKS[name][1] in text for text in refuse_all(file))


# Without relative positions, which are a setting, BEiT is a ViT.
@pytest.mark.parametrize("name", [name for name in NETWORKS if name != "Beit"])
def test_names_and_shapes_are_enough(name: str, tmp_path: Path) -> None:
    file = save(name, tmp_path)
    (tmp_path / "config.json").unlink()
    reason = BY_SHAPE.get(name, NETWORKS[name][1])
    assert all(reason in text for text in refuse_all(file))


def save(name: str, folder: Path) -> Path:
    """The file of a small network of transformers."""
    words = {} if name in WORDLESS else WORDS
    network = make(f"{name}Model", f"{name}Config", **words, **NETWORKS[name][0])
    return save_pretrained(network)(folder)


@pytest.mark.parametrize(
    ("name", "settings", "reason"),
    [
        ("vit_small_patch16_dinov3", {"depth": 1}, "'blocks.0.gamma_1'"),
        ("vit_small_patch16_rope_ape_224", {"depth": 1}, "'blocks.0.gamma_1'"),
        ("eva02_tiny_patch14_224", {"depth": 1}, UNLIKE_BIAS),
        ("vit_relpos_small_patch16_224", {"depth": 1}, RELATIVE),
        ("beit_base_patch16_224", {"depth": 1}, UNLIKE_BIAS),
        ("swin_tiny_patch4_window7_224", {"depths": (1, 1, 1, 1)}, RELATIVE),
        ("swinv2_cr_tiny_224", {"depths": (1, 1, 1, 1)}, "scales the scores"),
        ("davit_tiny", {}, "across channels"),
        ("xcit_nano_12_p16_224", {"depth": 1}, "scales the scores"),
    ],
)
def test_networks_of_timm_that_are_not_plain_are_refused_without_their_config_too(
    name: str, settings: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    network = timm_networks.create(name, **settings)
    texts = refuse_all(save_state(network.state_dict())(tmp_path))
    assert all(reason in text for text in texts)
