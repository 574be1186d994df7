"""An open checkpoint: sizes first, weights one layer at a time, and where they come from."""

import hashlib
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from export.checkpoints.checkpoint import open_checkpoint, read_checkpoint
from export.checkpoints.choice import choose_layers
from export.errors import CheckpointError
from model.contract import AttentionSpec, Causal
from tests.export.sharded import SHARDS, H

PARTS = ("W_q", "W_k", "W_v", "fc_out")


def test_the_sizes_and_tensors_of_a_layer_are_told_without_its_numbers(sharded: Path) -> None:
    with open_checkpoint(sharded) as checkpoint:
        (found,) = choose_layers(checkpoint.tensors, "cross")
        spec, used = checkpoint.look_at(found)
        assert spec == AttentionSpec(12, H, kdim=8, vdim=10)
        assert sorted(used) == sorted(
            f"cross.{name}.{part}" for name in PARTS for part in ("weight", "bias")
        )


def test_a_layer_comes_with_the_files_and_tensors_that_it_was_read_from(sharded: Path) -> None:
    hashes = {name: hashlib.sha256((sharded / name).read_bytes()).hexdigest() for name in SHARDS}
    with open_checkpoint(sharded) as checkpoint:
        layers = choose_layers(checkpoint.tensors, "all")
        sources = [checkpoint.read(found)[1] for found in layers]
    assert [source.layer for source in sources] == ["cross", "layers.0", "layers.1", "layers.2"]
    assert sources[0].files == {SHARDS[1]: hashes[SHARDS[1]]}
    assert sources[1].files == hashes
    assert sources[1].family == "MultiHeadAttention"
    assert len(sources[1].tensors) == 8
    assert all(name.startswith("layers.0.") for name in sources[1].tensors)


def test_layers_are_numbered_as_they_are_counted(sharded: Path) -> None:
    with open_checkpoint(sharded) as checkpoint:
        numbers = checkpoint.number_layers()
    assert {found.layer: number for found, number in numbers.items()} == {
        "cross": 0,
        "layers.0": 1,
        "layers.1": 2,
        "layers.2": 3,
    }


def test_bfloat16_in_a_shard_is_read_exactly(sharded: Path) -> None:
    stored = load_file(sharded / SHARDS[1])["cross.W_k.weight"]
    assert stored.dtype == torch.bfloat16
    read = read_checkpoint(sharded, layer="cross")
    np.testing.assert_array_equal(read.W_k, stored.double().numpy())


def test_a_snapshot_of_the_hugging_face_cache_is_read_with_the_config_beside_its_links(
    sharded: Path, tmp_path: Path
) -> None:
    snapshot, blobs = tmp_path / "cache" / "snapshots" / "1a2b", tmp_path / "cache" / "blobs"
    snapshot.mkdir(parents=True)
    blobs.mkdir()
    for number, path in enumerate(sorted(sharded.iterdir())):
        path.rename(blobs / str(number))
        (snapshot / path.name).symlink_to(f"../../blobs/{number}")
    assert read_checkpoint(snapshot, layer="layers.2").spec == AttentionSpec(12, H)


def test_one_layer_is_read_at_a_time(sharded: Path) -> None:
    with pytest.raises(CheckpointError) as caught:
        read_checkpoint(sharded, layer="layers.*")
    assert str(caught.value) == "'layers.*' fits 3 layers, expected one"


@pytest.mark.parametrize("causal", [None, False, "bottom_right"])
def test_whether_a_layer_hides_later_keys_is_as_its_family_has_it_or_as_given_by_hand(
    causal: Causal | None, sharded: Path, tmp_path: Path
) -> None:
    gpt2 = {"attn.c_attn.weight": torch.zeros(12, 36), "attn.c_proj.weight": torch.zeros(12, 12)}
    save_file(gpt2, tmp_path / "gpt2.safetensors")
    families: dict[Path, Causal] = {tmp_path / "gpt2.safetensors": "bottom_right", sharded: False}
    for path, usual in families.items():
        with open_checkpoint(path, H, causal) as checkpoint:
            found = choose_layers(checkpoint.tensors, "all")[0]
            expected = usual if causal is None else causal
            assert checkpoint.look_at(found)[0].causal == expected
            assert checkpoint.read(found)[0].spec.causal == expected
