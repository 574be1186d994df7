"""The files of one version: whole, listed, and where they may be."""

import json
import os
import shutil
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import onnx
import pytest

from model.contract import FUSED_BIAS, FUSED_WEIGHTS
from service.engine.directories import DEMO
from service.engine.model_config import ModelConfig
from service.engine.model_fault import ModelFaultError
from service.engine.version_files import check_version

OUTSIDE = "leads through a link out of the directory of models; put the files into it"


@pytest.fixture(name="version")
def copy_demo(tmp_path: Path) -> Path:
    """Version 1 of a model `layer`."""
    return Path(shutil.copytree(DEMO / "demo" / "1", tmp_path / "models" / "layer" / "1"))


def check(version: Path) -> Any:
    return check_version(version, version.parents[1])


def refuse(version: Path) -> str:
    with pytest.raises(ModelFaultError) as caught:
        check(version)
    return str(caught.value)


def write(version: Path, name: str, content: bytes) -> None:
    """Put a file into a version, and its entry into the manifest."""
    (version / name).write_bytes(content)
    manifest = json.loads((version / "manifest.json").read_text())
    entry = {"bytes": len(content), "sha256": sha256(content).hexdigest()}
    manifest["files"][name] = entry
    (version / "manifest.json").write_text(json.dumps(manifest))


def move_weights(version: Path, graph: str, location: str) -> None:
    """Let a graph look for its weights somewhere else."""
    proto = onnx.load(version / graph, load_external_data=False)
    for tensor in proto.graph.initializer:
        for entry in tensor.external_data:
            if entry.key == "location":
                entry.value = location
    write(version, graph, proto.SerializeToString())


def test_a_whole_version_is_described(version: Path) -> None:
    (version.parent / "config.pbtxt").write_text("max_batch_size: 4")
    files = check(version)
    assert (files.directory, files.place) == (version, version)
    assert files.label == "model layer/1"
    assert (files.spec.d_model, files.spec.num_heads) == (6, 3)
    assert files.config == ModelConfig(max_batch_size=4)


def test_a_graph_is_read_with_the_files_of_its_tensors(version: Path) -> None:
    content, external = check(version).read_graph(FUSED_BIAS.file)
    assert content == (version / FUSED_BIAS.file).read_bytes()
    assert external == {"weights.bin": (version / "weights.bin").read_bytes()}


def test_a_graph_that_changed_meanwhile_is_not_read(version: Path) -> None:
    files = check(version)
    (version / "weights.bin").write_bytes(b"other")
    with pytest.raises(ModelFaultError, match=r"^weights\.bin differs from its entry"):
        files.read_graph(FUSED_WEIGHTS.file)


CHANGES: dict[str, tuple[Callable[[Path], object], bool]] = {
    "touched": (lambda v: (v / "weights.bin").touch(), True),
    "copied": (lambda v: shutil.copytree(v, v.parent / "2"), True),
    "a new config": (lambda v: (v.parent / "config.pbtxt").write_text("max_batch_size: 3"), False),
    "a new file": (lambda v: write(v, "notes.txt", b"by hand"), False),
}


@pytest.mark.parametrize("change", CHANGES)
def test_the_digest_is_that_of_the_content(version: Path, change: str) -> None:
    before = check(version).digest
    make, is_same = CHANGES[change]
    make(version)
    assert (check(version).digest == before) is is_same


def test_what_is_missing_or_malformed_is_told(version: Path) -> None:
    (version.parent / "config.pbtxt").write_text("max_batch_size: x")
    assert refuse(version).startswith("config.pbtxt: line 1: max_batch_size is x, expected")
    (version / "fused.onnx").unlink()
    assert refuse(version) == "fused.onnx is missing"
    (version / "manifest.json").unlink()
    assert refuse(version) == "manifest.json is missing; limelight-export writes it"
    shutil.rmtree(version)
    assert refuse(version) == "its directory cannot be read: No such file or directory"


@pytest.mark.parametrize("location", ["../weights.bin", "/etc/passwd", "sub/weights.bin", "..", ""])
@pytest.mark.parametrize("graph", ["fused_weights.onnx", "model.onnx"])
def test_tensors_that_are_no_plain_file_beside_the_graph_are_refused(
    version: Path, graph: str, location: str
) -> None:
    move_weights(version, graph, location)
    assert refuse(version) == (
        f"{graph} keeps tensors in '{location}', expected a plain file beside it"
    )


def test_tensors_in_a_file_that_the_manifest_does_not_list_are_refused(version: Path) -> None:
    shutil.copy(version / "weights.bin", version / "others.bin")
    move_weights(version, "fused.onnx", "others.bin")
    assert refuse(version) == (
        "fused.onnx keeps tensors in 'others.bin', which manifest.json does not list"
    )
    write(version, "others.bin", (version / "others.bin").read_bytes())
    content, external = check(version).read_graph("fused.onnx")
    assert b"others.bin" in content
    assert external == {"others.bin": (version / "others.bin").read_bytes()}


def test_a_file_that_is_no_graph_is_refused(version: Path) -> None:
    write(version, "model.onnx", b"no graph")
    assert refuse(version) == "model.onnx is no ONNX file: it is not protobuf"


@pytest.mark.parametrize("file", ["weights.bin", "model.onnx", "manifest.json", "../config.pbtxt"])
def test_a_file_behind_a_link_that_leads_out_is_refused(version: Path, file: str) -> None:
    (version.parent / "config.pbtxt").write_text("")
    path = Path(os.path.normpath(version / file))
    outside = version.parents[2] / "outside"
    path.rename(outside)
    path.symlink_to(outside)
    place = f"layer/{'config.pbtxt' if 'config' in file else f'1/{file}'}"
    assert refuse(version) == f"'{place}' {OUTSIDE}"


def test_a_file_behind_a_link_to_another_file_of_the_directory_is_read(version: Path) -> None:
    store = version.parents[1] / "..store"
    store.mkdir()
    for path in list(version.iterdir()):
        path.rename(store / path.name)
        path.symlink_to(Path("..", "..", "..store", path.name))
    assert check(version).read_graph(FUSED_BIAS.file)


def test_a_version_is_read_from_one_place_though_a_link_is_turned(version: Path) -> None:
    root = version.parents[1]
    (root / "..1").mkdir()
    version.parent.rename(root / "..1" / "layer")
    (root / "..data").symlink_to("..1")
    (root / "layer").symlink_to("..data/layer")
    files = check(root / "layer" / "1")
    assert files.place == root / "..1" / "layer" / "1"
    (root / "..2").mkdir()
    (root / "new").symlink_to("..2")
    (root / "new").rename(root / "..data")
    assert files.read_graph(FUSED_BIAS.file)
