"""A version that is verified again: as it was, or refused by what differs."""

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import onnx
import onnxruntime
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from export.errors import ExportError, RepositoryError, VerificationError
from export.record import read_report
from export.repository import hash_file
from export.version import find_versions, read_manifest, verify_version


@pytest.fixture(name="version")
def copy_version(exported: Path, tmp_path: Path) -> Path:
    """A version that may be changed."""
    return Path(shutil.copytree(exported.parent, tmp_path / "models" / "small") / "1")


def refusal_of(version: Path) -> str:
    with pytest.raises(VerificationError) as caught:
        verify_version(version, "cpu")
    return str(caught.value)


def sign(version: Path) -> None:
    """Bring the manifest up to date, as one would who changed a file on purpose."""
    manifest = json.loads((version / "manifest.json").read_text())
    for name, entry in manifest["files"].items():
        entry["sha256"] = hash_file(version / name)
    (version / "manifest.json").write_text(json.dumps(manifest))


def test_what_was_exported_is_verified_again_with_the_same_errors(exported: Path) -> None:
    assert verify_version(exported, "cpu") == read_report(exported)


def test_versions_are_found_in_a_repository_in_a_model_and_by_themselves(version: Path) -> None:
    aside = version.parent.parent / ".other.abcdefgh" / "other" / "1"
    shutil.copytree(version, aside)
    for directory in (version, version.parent, version.parent.parent):
        assert find_versions(directory) == [version]


def test_a_directory_without_a_manifest_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RepositoryError) as caught:
        find_versions(tmp_path)
    assert str(caught.value) == (
        f"'{tmp_path}' holds no manifest.json, expected the directory of a version, of a model or "
        "of models that limelight-export made"
    )


def test_a_file_that_was_changed_is_named_with_both_hashes(version: Path) -> None:
    before = hash_file(version / "weights.bin")
    content = bytearray((version / "weights.bin").read_bytes())
    content[-1] ^= 1
    (version / "weights.bin").write_bytes(content)
    assert refusal_of(version) == (
        f"'{version}': weights.bin has SHA-256 {hashlib.sha256(content).hexdigest()}, expected "
        f"{before} as in manifest.json; export the layer again"
    )


def test_an_example_may_be_put_there_by_anyone(version: Path) -> None:
    (version / "example.safetensors").write_bytes(b"text")
    verify_version(version, "cpu")


def test_a_file_that_is_missing_or_was_added_is_named(version: Path) -> None:
    (version / "notes.txt").write_text("text")
    assert refusal_of(version) == (
        f"'{version}': notes.txt is not in manifest.json; export the layer again"
    )
    (version / "notes.txt").rename(version / "fused.onnx")
    (version / "fused.onnx").unlink()
    assert refusal_of(version) == (f"'{version}': fused.onnx is missing; export the layer again")


def test_a_graph_that_computes_something_else_is_refused(version: Path) -> None:
    proto = onnx.load(version / "fused_bias.onnx", load_external_data=False)
    places = {tensor.name: tensor.external_data for tensor in proto.graph.initializer}
    places["W_q.bias"][1].value = places["W_v.bias"][1].value  # the offset
    (version / "fused_bias.onnx").write_bytes(proto.SerializeToString())
    sign(version)
    assert refusal_of(version).startswith("graph 'fused_bias': output differs from float64 by ")


def test_a_graph_that_is_damaged_is_refused(version: Path) -> None:
    (version / "model.onnx").write_bytes(b"text")
    sign(version)
    with pytest.raises(ExportError) as caught:
        verify_version(version, "cpu")
    text = str(caught.value)
    assert text.startswith(f"'{version}/model.onnx' cannot be opened: ")
    assert text.endswith("; export the layer again")


def test_weights_that_are_too_short_are_refused(version: Path) -> None:
    (version / "weights.bin").write_bytes(bytes(64))
    sign(version)
    assert refusal_of(version).startswith(f"'{version}': cannot reshape array of size")


@pytest.mark.parametrize(
    "text", ["", "[1]", '{"files": [], "attention": {}}', '{"files": {"a": 1}, "attention": {}}']
)
def test_what_is_no_manifest_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(RepositoryError) as caught:
        read_manifest(tmp_path)
    assert str(caught.value) == (
        f"'{tmp_path}/manifest.json' is not a manifest; export the layer again"
    )


@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    content=st.recursive(
        st.none() | st.integers() | st.text(),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(st.sampled_from(["files", "attention", "sha256"]), inner)
        ),
    )
)
def test_any_manifest_is_read_or_refused(content: Any, tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(json.dumps(content))
    try:
        manifest = read_manifest(tmp_path)
    except RepositoryError:
        return
    assert isinstance(manifest["files"], dict)
    assert isinstance(manifest["attention"], dict)


@pytest.mark.skipif(
    "CUDAExecutionProvider" in onnxruntime.get_available_providers(), reason="CUDA is there"
)
@pytest.mark.filterwarnings("ignore:Specified provider")
def test_a_provider_that_is_not_there_is_refused(exported: Path) -> None:
    with pytest.raises(ExportError) as caught:
        verify_version(exported, "cuda")
    assert str(caught.value) == (
        "onnxruntime was asked for cuda, but runs on CPUExecutionProvider; install the extra "
        "'gpu' on a machine with an NVIDIA GPU, or take --provider cpu"
    )


@pytest.mark.gpu
def test_graphs_are_right_on_cuda_too(exported: Path) -> None:
    assert list(verify_version(exported, "cuda")) == [
        "model",
        "fused_bias",
        "fused",
        "fused_causal",
    ]
