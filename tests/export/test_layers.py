"""All layers of a checkpoint at once: traced once for a size, together or not at all."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from export.checkpoints.checkpoint import open_checkpoint, read_checkpoint
from export.checkpoints.choice import choose_layers
from export.errors import CheckpointError
from export.layers import export_layers, name_models
from export.onnx_file import read_weights
from export.progress import count_steps
from export.version import verify_version
from model.contract import GRAPHS, WEIGHTS_FILE
from model.weights import STATE_NAMES
from tests.export.sharded import SHARDS, write_sharded

NAMES = ["net.layer00", "net.layer01", "net.layer02", "net.layer03"]


def export(checkpoint: Path, models: Path, wanted: str = "all") -> tuple[list[Path], list[str]]:
    """The versions, and the steps that were told."""
    steps: list[str] = []
    with open_checkpoint(checkpoint) as opened:
        chosen = choose_layers(opened.tensors, wanted)
        specs = [opened.look_at(found)[0] for found in chosen]
        layers = zip(name_models(opened, chosen, "net"), chosen, specs, strict=True)
        return export_layers(opened, list(layers), models, steps.append), steps


@pytest.fixture(scope="module", name="made")
def export_all(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Path], list[str]]:
    """The checkpoint, the versions of its four layers, and the steps."""
    directory = tmp_path_factory.mktemp("all")
    checkpoint = write_sharded(directory / "network")
    return checkpoint, *export(checkpoint, directory / "models")


def test_every_layer_becomes_a_model_with_its_number(
    made: tuple[Path, list[Path], list[str]],
) -> None:
    _, versions, _ = made
    assert [version.parent.name for version in versions] == NAMES
    assert sorted(path.name for path in versions[0].parent.parent.iterdir()) == NAMES


def test_layers_of_one_size_share_graphs_that_are_traced_once(
    made: tuple[Path, list[Path], list[str]],
) -> None:
    _, (cross, first, *others), steps = made
    assert len(steps) == count_steps(layers=4, templates=2)
    assert sum(step.startswith("traced") for step in steps) == 2 * len(GRAPHS)
    for graph in GRAPHS:
        content = (first / graph.file).read_bytes()
        assert all((other / graph.file).read_bytes() == content for other in others)
        assert (cross / graph.file).read_bytes() != content


def test_every_layer_has_weights_of_its_own_and_is_right(
    made: tuple[Path, list[Path], list[str]],
) -> None:
    checkpoint, versions, _ = made
    names = ["cross", "layers.0", "layers.1", "layers.2"]
    for version, name in zip(versions, names, strict=True):
        weights = read_checkpoint(checkpoint, layer=name)
        written = read_weights(version / WEIGHTS_FILE, weights.spec)
        for field in STATE_NAMES.values():
            np.testing.assert_array_equal(getattr(written, field), getattr(weights, field))
        verify_version(version, "cpu")


def test_the_record_names_family_layer_files_and_tensors(
    made: tuple[Path, list[Path], list[str]],
) -> None:
    checkpoint, versions, _ = made
    source = json.loads((versions[2] / "verification.json").read_text())["source"]
    with open_checkpoint(checkpoint) as opened:
        (found,) = choose_layers(opened.tensors, "layers.1")
        _, expected = opened.read(found)
    assert source == {
        "family": expected.family,
        "layer": "layers.1",
        "files": expected.files,
        "tensors": expected.tensors,
    }
    assert list(source["files"]) == list(SHARDS)


def test_a_layer_keeps_its_number_when_it_is_exported_with_a_pattern(
    sharded: Path, tmp_path: Path
) -> None:
    versions, _ = export(sharded, tmp_path / "models", "layers.[12]")
    assert [version.parent.name for version in versions] == NAMES[2:]


def test_one_layer_that_holds_nan_leaves_none_of_them_behind(sharded: Path, tmp_path: Path) -> None:
    tensors = load_file(sharded / SHARDS[0])
    tensors["layers.2.fc_out.weight"][3, 4] = torch.nan
    save_file(tensors, sharded / SHARDS[0])
    with pytest.raises(CheckpointError) as caught:
        export(sharded, tmp_path / "models")
    assert str(caught.value) == (
        f"tensor 'layers.2.fc_out.weight' of '{SHARDS[0]}' holds nan at [3, 4], expected finite "
        "float32 numbers; take a checkpoint from before the training diverged"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["network"]
