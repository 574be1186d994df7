"""The manifest of a model directory: every damage is told before onnxruntime sees a file."""

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from model.contract import AttentionSpec
from service.engine.directories import DEMO
from service.engine.manifest import MAX_MANIFEST_BYTES, Manifest, ManifestError
from service.engine.model_fault import ModelFaultError, UnreadableError

FILES = [
    "fused.onnx", "fused_bias.onnx", "fused_causal.onnx", "fused_weights.onnx", "model.onnx",
    "verification.json", "weights.bin",
]  # fmt: skip

Change = Callable[[dict[str, Any]], object]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A copy of the demo's files."""
    return Path(shutil.copytree(DEMO / "demo" / "1", tmp_path / "1"))


def change(directory: Path, edit: Change) -> None:
    path = directory / "manifest.json"
    content = json.loads(path.read_text())
    edit(content)
    path.write_text(json.dumps(content))


def check(directory: Path) -> None:
    manifest = Manifest.read(directory)
    manifest.read_spec()
    manifest.check_files(directory)


def refuse(directory: Path) -> str:
    with pytest.raises(ManifestError) as caught:
        check(directory)
    return str(caught.value)


def test_the_demo_is_whole(directory: Path) -> None:
    manifest = Manifest.read(directory)
    manifest.check_files(directory)
    assert manifest.read_spec() == AttentionSpec(6, 3)
    assert set(FILES) >= set(manifest.files)


def test_members_of_later_formats_are_left_alone(directory: Path) -> None:
    change(directory, lambda m: m.update(later={"a": [1]}))
    change(directory, lambda m: m["files"]["model.onnx"].update(later=1))
    Manifest.read(directory).check_files(directory)


def test_a_missing_manifest_says_who_writes_it(directory: Path) -> None:
    (directory / "manifest.json").unlink()
    assert refuse(directory) == "manifest.json is missing; limelight-export writes it"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"", "Expecting value: line 1 column 1 (char 0)"),
        (b"{", "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
        (b"\xff\xfe", "'utf-8' codec can't decode byte 0xff in position 0: invalid start byte"),
        (b"[]", "Input should be a valid dictionary or instance of Manifest"),
        (b"{}", "Field required"),
        (b"[" * 100000, "maximum recursion depth exceeded while decoding a JSON array from a "
         "unicode string"),
    ],
)  # fmt: skip
def test_a_broken_manifest_says_why(directory: Path, text: bytes, reason: str) -> None:
    (directory / "manifest.json").write_bytes(text)
    said = refuse(directory)
    if text[:1] != b"\xff":  # bytes like these may be UTF-16 to the parser
        assert said == f"manifest.json cannot be read: {reason}"
    assert said.startswith("manifest.json cannot be read: ")


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        (lambda m: m.update(format="1"), "Input should be a valid integer"),
        (lambda m: m.update(attention=[]), "Input should be a valid dictionary"),
        (lambda m: m["attention"].update(d_model=6), "Input should be a valid string"),
        (lambda m: m["files"]["model.onnx"].update(bytes=-1), "Input should be greater than or "
         "equal to 0"),
        (lambda m: m["files"]["model.onnx"].update(sha256="0"), "String should match pattern "
         "'^[0-9a-f]{64}$'"),
    ],
)  # fmt: skip
def test_a_member_of_another_type_is_refused(directory: Path, edit: Change, reason: str) -> None:
    change(directory, edit)
    assert refuse(directory) == f"manifest.json cannot be read: {reason}"


def test_another_format_is_refused(directory: Path) -> None:
    change(directory, lambda m: m.update(format=2))
    assert refuse(directory) == ("manifest.json has format 2, expected 1; export the model again")


@pytest.mark.parametrize("name", [name for name in FILES if name != "verification.json"])
def test_every_file_that_a_model_needs_is_listed(directory: Path, name: str) -> None:
    change(directory, lambda m: m["files"].pop(name))
    assert refuse(directory) == f"manifest.json does not list {name}; export the model again"


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        ({"d_model": "0"}, "manifest.json: d_model is 0, expected a positive number"),
        ({"d_model": "6.0"}, "manifest.json: d_model is '6.0', expected a whole number as text"),
        ({"num_heads": "4"}, "manifest.json: d_model (6) must be a multiple of num_heads (4)"),
        ({"num_heads": ""}, "manifest.json: num_heads is '', expected a whole number as text"),
    ],
)
def test_sizes_that_cannot_be_are_refused(
    directory: Path, sizes: dict[str, str], said: str
) -> None:
    change(directory, lambda m: m["attention"].update(sizes))
    assert refuse(directory) == said


def test_a_missing_size_is_refused(directory: Path) -> None:
    change(directory, lambda m: m["attention"].pop("kdim"))
    assert refuse(directory) == "manifest.json: kdim is None, expected a whole number as text"


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_named(directory: Path, name: str) -> None:
    if name in Manifest.read(directory).files:
        (directory / name).unlink()
        assert refuse(directory) == f"{name} is missing"


@pytest.mark.parametrize("name", ["model.onnx", "weights.bin"])
@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data + b"\0",
        lambda data: data[:-1],
        lambda data: bytes([data[0] ^ 1]) + data[1:],
        lambda _: b"",
    ],
    ids=["longer", "shorter", "one bit", "empty"],
)
def test_a_changed_file_is_named(
    directory: Path, name: str, damage: Callable[[bytes], bytes]
) -> None:
    path = directory / name
    path.write_bytes(damage(path.read_bytes()))
    assert refuse(directory) == f"{name} differs from its entry in manifest.json"


@pytest.mark.parametrize("name", ["../weights.bin", "/etc/passwd", "a/b", "./weights.bin"])
def test_a_path_out_of_the_directory_is_refused(directory: Path, name: str) -> None:
    change(directory, lambda m: m["files"].update({name: m["files"]["weights.bin"]}))
    assert refuse(directory) == f"manifest.json lists {name!r}, expected a plain file name"


@pytest.mark.parametrize("name", ["..", ".", "", "\0"])
def test_a_name_that_is_no_file_is_refused(directory: Path, name: str) -> None:
    change(directory, lambda m: m["files"].update({name: m["files"]["weights.bin"]}))
    assert refuse(directory) == f"manifest.json lists {name!r}, expected a plain file name"


@pytest.mark.parametrize("name", ["weights.bin", "manifest.json"])
def test_a_pipe_is_not_waited_for(directory: Path, name: str) -> None:
    (directory / name).unlink()
    os.mkfifo(directory / name)
    with pytest.raises(UnreadableError) as caught:
        check(directory)
    assert str(caught.value) == f"{name} cannot be read: it is no regular file"


def test_a_manifest_as_large_as_a_model_is_not_read(directory: Path) -> None:
    (directory / "manifest.json").write_bytes(b" " * (MAX_MANIFEST_BYTES + 1))
    with pytest.raises(UnreadableError) as caught:
        check(directory)
    assert str(caught.value) == ("manifest.json cannot be read: it is larger than 1048576 bytes")


def test_a_file_is_read_if_it_is_the_one_that_is_listed(directory: Path) -> None:
    manifest, path = Manifest.read(directory), directory / "weights.bin"
    content = path.read_bytes()
    assert manifest.read_file(directory, "weights.bin") == content
    path.write_bytes(content[::-1])
    with pytest.raises(ManifestError, match=r"^weights\.bin differs from its entry in manifest"):
        manifest.read_file(directory, "weights.bin")


def test_a_file_of_another_size_is_not_even_read(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = Manifest.read(directory)
    (directory / "weights.bin").write_bytes(b"half")
    monkeypatch.delattr(hashlib, "sha256")
    monkeypatch.delattr(hashlib, "file_digest")
    for look in (manifest.check_file, manifest.read_file):
        with pytest.raises(ModelFaultError, match=r"^weights\.bin differs from its entry"):
            look(directory, "weights.bin")
