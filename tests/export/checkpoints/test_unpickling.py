"""Files of ``torch.save``: tensors alone come out, and nothing in a file is ever run."""

import os
import pickle
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch

from export.checkpoints.unpickling import read_pickle
from export.errors import CheckpointError

STATE = {"a.b": torch.arange(6.0).reshape(2, 3), "c": torch.arange(5.0)}


def refusal_of(path: Path) -> str:
    with pytest.raises(CheckpointError) as caught:
        read_pickle(path)
    return str(caught.value)


class Touch:
    """An object that makes a directory when it is unpickled the ordinary way."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


def test_dictionaries_in_dictionaries_become_dotted_names(tmp_path: Path) -> None:
    saved = {"model": STATE, "optimizer": {"state": {0: {"step": torch.ones(1)}}}, "epoch": 3}
    torch.save(saved, tmp_path / "x.pt")
    names = ["model.a.b", "model.c", "optimizer.state.0.step"]
    assert list(read_pickle(tmp_path / "x.pt")) == names


def test_two_tensors_of_one_name_are_refused(tmp_path: Path) -> None:
    torch.save(STATE | {"a": {"b": torch.ones(3)}}, tmp_path / "x.pt")
    assert refusal_of(tmp_path / "x.pt") == (
        f"checkpoint '{tmp_path}/x.pt' names two tensors 'a.b', expected one of each name; save "
        "layer.state_dict() alone"
    )


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
    assert refusal_of(tmp_path / "x.pt") == (
        f"checkpoint '{tmp_path}/x.pt' is damaged or cut off (not what torch.save writes); copy "
        "or download it again"
    )


def repack(path: Path, method: int) -> None:
    """Write the same entries with another method of compression."""
    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)


def test_a_zip_bomb_is_refused_by_the_entry_that_would_grow(tmp_path: Path) -> None:
    torch.save({"W": torch.zeros(4 << 20)}, tmp_path / "x.pt")
    repack(tmp_path / "x.pt", zipfile.ZIP_STORED)
    assert list(read_pickle(tmp_path / "x.pt")) == ["W"]
    repack(tmp_path / "x.pt", zipfile.ZIP_DEFLATED)
    with zipfile.ZipFile(tmp_path / "x.pt") as archive:
        first = archive.infolist()[0]
    assert refusal_of(tmp_path / "x.pt") == (
        f"checkpoint '{tmp_path}/x.pt': its entry 'x/data.pkl' is compressed, from "
        f"{first.compress_size} bytes that grow to {first.file_size}, expected bytes as they "
        "are; save layer.state_dict() with torch.save"
    )


def test_entries_that_share_their_bytes_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.pt"
    torch.save({"W": torch.zeros(64 << 10)}, path)
    with zipfile.ZipFile(path, "a") as archive:
        for entry in archive.infolist()[:]:
            archive.filelist.append(entry)
        archive._didModify = True  # type: ignore[attr-defined] # so that the list is written
        total_bytes = sum(entry.file_size for entry in archive.infolist())
    assert refusal_of(path) == (
        f"checkpoint '{path}' is damaged or cut off (its entries take {total_bytes} bytes, more "
        "than the file has); copy or download it again"
    )
