"""The model directory: all of it or nothing, whatever happens in the middle."""

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from export.errors import RepositoryError
from export.repository import NewVersion, check_name, write_versions
from model.contract import GRAPHS, AttentionSpec

SPEC = AttentionSpec(12, 3, kdim=8, vdim=10)
FILES = ["fused.onnx", "fused_bias.onnx", "fused_causal.onnx", "fused_weights.onnx"]
FILES += ["manifest.json", "model.onnx", "verification.json", "weights.bin"]


def write_one_file(directory: Path) -> None:
    (directory / "model.onnx").write_text("graph")


def write_version(
    models: Path, name: str, spec: AttentionSpec, fill: Callable[[Path], None]
) -> Path:
    (version,) = write_versions(models, [NewVersion(name, spec, fill)])
    return version


def test_a_version_holds_the_files_of_the_design_and_nothing_else(exported: Path) -> None:
    assert sorted(path.name for path in exported.iterdir()) == FILES
    assert sorted(path.name for path in exported.parent.iterdir()) == ["1", "config.pbtxt"]
    assert [path.name for path in exported.parent.parent.iterdir()] == ["small"]


def test_others_may_read_what_was_written(exported: Path) -> None:
    umask = os.umask(0)
    os.umask(umask)
    for path in (exported.parent, exported, *exported.iterdir()):
        assert path.stat().st_mode & 0o777 == (0o777 if path.is_dir() else 0o666) & ~umask


def test_the_manifest_holds_size_and_hash_of_every_other_file(exported: Path) -> None:
    manifest = json.loads((exported / "manifest.json").read_text())
    assert manifest["format"] == 1
    assert manifest["attention"] == SPEC.to_properties()
    assert sorted(manifest["files"]) == [name for name in FILES if name != "manifest.json"]
    for name, entry in manifest["files"].items():
        content = (exported / name).read_bytes()
        assert entry == {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def test_the_manifest_tells_the_inputs_and_outputs_of_every_graph(exported: Path) -> None:
    graphs = json.loads((exported / "manifest.json").read_text())["graphs"]
    assert graphs == {
        graph.name: {
            "file": graph.file,
            "inputs": list(graph.inputs),
            "outputs": list(graph.outputs),
        }
        for graph in GRAPHS
    }


def test_the_config_of_triton_names_every_tensor_without_its_batch_axis(exported: Path) -> None:
    assert (
        (exported.parent / "config.pbtxt").read_text()
        == """\
name: "small"
platform: "onnxruntime_onnx"
default_model_filename: "model.onnx"
max_batch_size: 256
input [ { name: "query" data_type: TYPE_FP32 dims: [ -1, 12 ] } ]
input [ { name: "key" data_type: TYPE_FP32 dims: [ -1, 8 ] } ]
input [ { name: "value" data_type: TYPE_FP32 dims: [ -1, 10 ] } ]
input [ { name: "bias" data_type: TYPE_FP32 dims: [ -1, -1, -1 ] } ]
output [ { name: "output" data_type: TYPE_FP32 dims: [ -1, 12 ] } ]
output [ { name: "attention_weights" data_type: TYPE_FP32 dims: [ 3, -1, -1 ] } ]
"""
    )


def test_a_second_export_is_version_two_and_a_third_follows_the_highest(tmp_path: Path) -> None:
    write = [write_version(tmp_path, "m", SPEC, write_one_file) for _ in range(2)]
    assert write == [tmp_path / "m" / "1", tmp_path / "m" / "2"]
    (tmp_path / "m" / "2").rename(tmp_path / "m" / "11")
    assert write_version(tmp_path, "m", SPEC, write_one_file) == tmp_path / "m" / "12"


@pytest.mark.parametrize("name", ["version", "1", "_"])
def test_any_name_will_do(name: str, tmp_path: Path) -> None:
    assert write_version(tmp_path, name, SPEC, write_one_file) == tmp_path / name / "1"


def test_a_model_of_other_sizes_is_not_mixed_with_the_one_that_is_there(tmp_path: Path) -> None:
    write_version(tmp_path, "m", SPEC, write_one_file)
    with pytest.raises(RepositoryError) as caught:
        write_version(tmp_path, "m", AttentionSpec(12, 4, kdim=8, vdim=10), write_one_file)
    assert str(caught.value) == (
        "model 'm' exists with other sizes or a config of its own; choose another --name or "
        "remove it"
    )
    assert sorted(path.name for path in (tmp_path / "m").iterdir()) == ["1", "config.pbtxt"]


def test_a_model_of_other_sizes_that_appears_meanwhile_is_not_mixed_either(tmp_path: Path) -> None:
    def fill(directory: Path) -> None:
        write_one_file(directory)
        write_version(tmp_path, "m", AttentionSpec(12, 4), write_one_file)

    with pytest.raises(RepositoryError, match="exists with other sizes"):
        write_version(tmp_path, "m", SPEC, fill)
    assert [path.name for path in tmp_path.rglob("model.onnx")] == ["model.onnx"]


def test_a_directory_that_is_no_model_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "config.pbtxt").write_bytes(b"\xff")
    with pytest.raises(RepositoryError, match="a config of its own"):
        write_version(tmp_path, "m", SPEC, write_one_file)


@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
@pytest.mark.parametrize("there", [True, False])
def test_a_failure_in_the_middle_leaves_nothing_behind(
    error: BaseException, there: bool, tmp_path: Path
) -> None:
    def fail(directory: Path) -> None:
        write_one_file(directory)
        raise error

    models = tmp_path / "new" / "models"
    if there:
        write_version(models, "m", SPEC, write_one_file)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(type(error)):
        write_version(models, "m", SPEC, fail)
    assert sorted(tmp_path.rglob("*")) == before


def test_versions_that_cannot_all_be_placed_are_taken_back(tmp_path: Path) -> None:
    write_version(tmp_path, "a", SPEC, write_one_file)

    def meddle(directory: Path) -> None:
        write_one_file(directory)
        write_version(tmp_path, "c", AttentionSpec(12, 4), write_one_file)

    new = [NewVersion(name, SPEC, write_one_file) for name in "ab"]
    with pytest.raises(RepositoryError, match=r"^model 'c' exists with other sizes"):
        write_versions(tmp_path, [*new, NewVersion("c", SPEC, meddle)])
    left = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.onnx"))
    assert left == ["a/1/model.onnx", "c/1/model.onnx"]
    assert not (tmp_path / "b").exists()


ENDLESS = """
import sys, time
from pathlib import Path
from export.repository import NewVersion, write_versions
from model.contract import AttentionSpec

def fill(directory):
    (directory / "model.onnx").write_text("half a gra")
    print("writing", flush=True)
    time.sleep(60)

write_versions(Path(sys.argv[1]), [NewVersion("m", AttentionSpec(12, 3, 8, 10), fill)])
"""


def test_a_kill_in_the_middle_leaves_a_dot_directory_that_servers_skip(tmp_path: Path) -> None:
    command = [sys.executable, "-c", ENDLESS, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "writing\n"
        process.send_signal(signal.SIGKILL)
    (left,) = tmp_path.iterdir()
    assert left.name.startswith(".m.")
    assert write_version(tmp_path, "m", SPEC, write_one_file) == tmp_path / "m" / "1"
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


def test_what_another_export_is_writing_stays(tmp_path: Path) -> None:
    command = [sys.executable, "-c", ENDLESS, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "writing\n"
        (written,) = tmp_path.iterdir()
        write_version(tmp_path, "m", SPEC, write_one_file)
        assert (written / ".version" / "model.onnx").read_text() == "half a gra"
        process.kill()


def test_a_directory_stands_under_its_name_only_when_it_is_full(tmp_path: Path) -> None:
    def fill(directory: Path) -> None:
        assert [path.name[0] for path in tmp_path.iterdir()] == ["."]
        write_one_file(directory)

    write_version(tmp_path, "m", SPEC, fill)
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


@given(st.text())
@example("stats")
@example("stats2")
@example("..")
@example("a/b")
@example("a\n")
def test_a_name_is_taken_exactly_where_it_needs_no_escape(name: str) -> None:
    fit = bool(re.match(r"[A-Za-z0-9_][A-Za-z0-9_.-]*\Z", name)) and name != "stats"
    if fit:
        check_name(name)
        return
    with pytest.raises(RepositoryError) as caught:
        check_name(name)
    assert str(caught.value) == (
        f"model name is {name!r}, expected letters, digits, '_', '.' and '-', not starting with "
        "'.' or '-', and not 'stats'"
    )


def test_a_full_disk_is_told_with_its_directory_and_leaves_nothing_behind(tmp_path: Path) -> None:
    models = tmp_path / "models"
    with pytest.raises(RepositoryError) as caught:
        write_version(models, "a", SPEC, lambda _: fill_the_disk())
    assert str(caught.value) == (
        f"'{models}' has no room for model 'a' (No space left on device); make room or choose "
        "another --models"
    )
    assert not list(tmp_path.iterdir())


def fill_the_disk() -> None:
    Path("/dev/full").write_bytes(b"x")
