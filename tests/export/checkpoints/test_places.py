"""A checkpoint that is named by its file or by its directory."""

from pathlib import Path

import pytest

from export.checkpoints.places import USUAL, find_checkpoint
from export.errors import CheckpointError

EXPECTED = "expected a .safetensors, .safetensors.index.json, .pt, .pth or .bin file"


def refusal_of(path: Path) -> str:
    with pytest.raises(CheckpointError) as caught:
        find_checkpoint(path)
    return str(caught.value)


def fill(directory: Path, *names: str) -> None:
    for name in names:
        (directory / name).touch()


def test_a_file_is_itself(tmp_path: Path) -> None:
    fill(tmp_path, "any name.pth")
    assert find_checkpoint(tmp_path / "any name.pth") == tmp_path / "any name.pth"


@pytest.mark.parametrize("number", range(len(USUAL)))
def test_a_directory_stands_for_the_first_of_the_usual_names(number: int, tmp_path: Path) -> None:
    fill(tmp_path, *USUAL[number:], "config.json", "a.bin", "model-00001-of-00002.safetensors")
    assert find_checkpoint(tmp_path) == tmp_path / USUAL[number]


def test_a_directory_stands_for_its_only_checkpoint(tmp_path: Path) -> None:
    fill(tmp_path, "best.pt", "README.md")
    assert find_checkpoint(tmp_path) == tmp_path / "best.pt"


def test_links_of_a_snapshot_are_followed_and_keep_their_place(tmp_path: Path) -> None:
    blobs, snapshot = tmp_path / "blobs", tmp_path / "snapshots" / "1a2b"
    blobs.mkdir()
    snapshot.mkdir(parents=True)
    fill(blobs, "0123abcd")
    (snapshot / "model.safetensors").symlink_to("../../blobs/0123abcd")
    assert find_checkpoint(snapshot) == snapshot / "model.safetensors"


def test_several_checkpoints_in_a_directory_are_listed(tmp_path: Path) -> None:
    fill(tmp_path, "b.pt", "a.safetensors")
    assert refusal_of(tmp_path) == (
        f"directory '{tmp_path}' holds 2 checkpoints, expected one; name the file: "
        "'a.safetensors', 'b.pt'"
    )


def test_what_is_no_checkpoint_is_named_with_what_would_be(tmp_path: Path) -> None:
    (tmp_path / "x.onnx").touch()
    (tmp_path / "x.pt").symlink_to("../blobs/0123abcd")
    (tmp_path / "empty").mkdir()
    for name, fault in (
        ("absent.pt", "does not exist"),
        ("x.pt", "is a link to nothing"),
        ("x.onnx", "has the suffix '.onnx'"),
    ):
        assert refusal_of(tmp_path / name) == f"checkpoint '{tmp_path / name}' {fault}, {EXPECTED}"
    assert refusal_of(tmp_path / "empty") == (
        f"directory '{tmp_path}/empty' holds no checkpoint, {EXPECTED}"
    )
    assert refusal_of(Path("/dev/null")) == f"checkpoint '/dev/null' is no file, {EXPECTED}"
