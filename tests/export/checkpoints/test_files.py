"""Files of checkpoints: damage is told in one line, and nothing in a file is ever run."""

import os
import pickle
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file

from export.checkpoints.files import open_tensors
from export.errors import CheckpointError

STATE = {"a.b": torch.arange(6.0).reshape(2, 3), "c": torch.arange(5.0)}


def write_state(path: Path) -> Path:
    if path.suffix == ".safetensors":
        save_file(STATE, path)
    else:
        torch.save(STATE, path)
    return path


def refusal_of(path: Path) -> str:
    with pytest.raises(CheckpointError) as caught:
        open_tensors(path)
    return str(caught.value)


@pytest.mark.parametrize("suffix", [".safetensors", ".pt", ".pth", ".bin"])
def test_tensors_are_read_by_name(suffix: str, tmp_path: Path) -> None:
    tensors = open_tensors(write_state(tmp_path / f"x{suffix}"))
    assert tensors.names == {"a.b", "c"}
    assert tensors.read("c", 5).tolist() == [0, 1, 2, 3, 4]


def test_a_file_of_old_torch_is_read(tmp_path: Path) -> None:
    torch.save(STATE, tmp_path / "x.pt", _use_new_zipfile_serialization=False)
    assert open_tensors(tmp_path / "x.pt").read("c", 5).tolist() == [0, 1, 2, 3, 4]


def test_dictionaries_in_dictionaries_become_dotted_names(tmp_path: Path) -> None:
    saved = {"model": STATE, "optimizer": {"state": {0: {"step": torch.ones(1)}}}, "epoch": 3}
    torch.save(saved, tmp_path / "x.pt")
    assert open_tensors(tmp_path / "x.pt").names == {
        "model.a.b",
        "model.c",
        "optimizer.state.0.step",
    }


@pytest.mark.parametrize("suffix", [".safetensors", ".pt"])
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_file_that_was_changed_anywhere_is_read_or_refused(
    suffix: str, data: st.DataObject, tmp_path: Path
) -> None:
    path = write_state(tmp_path / f"x{suffix}")
    content = bytearray(path.read_bytes())
    place = data.draw(st.integers(0, len(content) - 1), "place")
    content[place] = data.draw(st.integers(0, 255), "byte")
    path.write_bytes(content[: data.draw(st.sampled_from([None, place]), "end")])
    with suppress(CheckpointError):
        tensors = open_tensors(path)
        for name in tensors.names:
            tensors.load(name)


@pytest.mark.parametrize("suffix", [".safetensors", ".pt"])
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(content=st.binary(max_size=64))
def test_any_other_bytes_are_refused(suffix: str, content: bytes, tmp_path: Path) -> None:
    path = tmp_path / f"x{suffix}"
    path.write_bytes(content)
    assert refusal_of(path).startswith(f"checkpoint '{path}' ")


@pytest.mark.parametrize(
    ("suffix", "reason"),
    [
        (
            ".safetensors",
            "Error while deserializing header: incomplete metadata, file not fully covered",
        ),
        (".pt", "not what torch.save writes"),
    ],
)
def test_a_file_that_was_cut_off_is_named(suffix: str, reason: str, tmp_path: Path) -> None:
    path = write_state(tmp_path / f"x{suffix}")
    path.write_bytes(path.read_bytes()[:-4])
    assert refusal_of(path) == (
        f"checkpoint '{path}' is damaged or cut off ({reason}); copy or download it again"
    )


class Touch:
    """An object that makes a file when it is unpickled the ordinary way."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("suffix", [".pt", ".bin"])
@pytest.mark.parametrize("zipped", [True, False])
def test_a_pickle_that_runs_code_is_refused_and_not_run(
    suffix: str, zipped: bool, tmp_path: Path
) -> None:
    path, trace = tmp_path / f"x{suffix}", tmp_path / "trace"
    if zipped:
        torch.save({"W_q.weight": Touch(trace)}, path)
    else:
        path.write_bytes(pickle.dumps({"W_q.weight": Touch(trace)}, protocol=2))
    assert refusal_of(path) == (
        f"checkpoint '{path}' holds the object 'posix.mkdir', expected tensors alone, because "
        "loading objects would run code from the file; save layer.state_dict(), not the layer"
    )
    assert not trace.exists()


def test_a_whole_layer_is_refused_with_what_to_save_instead(tmp_path: Path) -> None:
    torch.save(torch.nn.Linear(2, 3), tmp_path / "x.pt")
    assert refusal_of(tmp_path / "x.pt") == (
        f"checkpoint '{tmp_path}/x.pt' holds the object 'torch.nn.modules.linear.Linear', "
        "expected tensors alone, because loading objects would run code from the file; save "
        "layer.state_dict(), not the layer"
    )


@pytest.mark.parametrize(("content", "kind"), [([1, 2], "list"), (torch.ones(3), "Tensor")])
def test_a_file_without_names_is_refused(content: object, kind: str, tmp_path: Path) -> None:
    torch.save(content, tmp_path / "x.pt")
    assert refusal_of(tmp_path / "x.pt") == (
        f"checkpoint '{tmp_path}/x.pt' holds a {kind}, expected a dictionary from names to "
        "tensors; save layer.state_dict()"
    )


def test_a_dictionary_that_holds_itself_is_refused(tmp_path: Path) -> None:
    endless: dict[str, Any] = {}
    endless["again"] = endless
    torch.save(endless, tmp_path / "x.pt")
    assert "is damaged or cut off" in refusal_of(tmp_path / "x.pt")


def test_what_is_no_checkpoint_is_named_with_what_would_be(tmp_path: Path) -> None:
    (tmp_path / "x.onnx").touch()
    (tmp_path / "x.pt").mkdir()
    expected = "expected a .safetensors, .pt, .pth or .bin file"
    for name, fault in (
        ("absent.pt", "does not exist"),
        ("x.pt", "is a directory"),
        ("x.onnx", "has the suffix '.onnx'"),
    ):
        assert refusal_of(tmp_path / name) == f"checkpoint '{tmp_path / name}' {fault}, {expected}"
