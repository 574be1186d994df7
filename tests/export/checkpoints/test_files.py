"""Files of checkpoints: damage is told in one line, and nothing in a file is ever run."""

from contextlib import suppress
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file

from export.checkpoints.files import open_tensors
from export.checkpoints.unpickling import read_pickle
from export.errors import CheckpointError

STATE = {"a.b": torch.arange(6.0).reshape(2, 3), "c": torch.arange(5.0)}


def write_state(path: Path) -> Path:
    if path.suffix == ".safetensors":
        save_file(STATE, path)
    else:
        torch.save(STATE, path)
    return path


def refusal_of(path: Path) -> str:
    with pytest.raises(CheckpointError) as caught, open_tensors(path):
        pass
    return str(caught.value)


@pytest.mark.parametrize("suffix", [".safetensors", ".pt", ".pth", ".bin"])
def test_tensors_are_read_by_name(suffix: str, tmp_path: Path) -> None:
    with open_tensors(write_state(tmp_path / f"x{suffix}")) as tensors:
        assert tensors.names == {"a.b", "c"}
        assert tensors.read("c", 5).tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("suffix", [".safetensors", ".pt"])
@pytest.mark.parametrize("datatype", [torch.int8, torch.bool, torch.float8_e5m2, torch.complex64])
def test_a_file_may_hold_what_no_layer_is_made_of(
    datatype: torch.dtype, suffix: str, tmp_path: Path
) -> None:
    others = {"x": torch.zeros(3).to(datatype), "y": torch.tensor(1.5)}
    path = tmp_path / f"x{suffix}"
    save_file(STATE | others, path) if suffix == ".safetensors" else torch.save(
        STATE | others, path
    )
    with open_tensors(path) as tensors:
        assert tensors.names == {"a.b", "c", "x", "y"}
        assert tensors.read("y") == 1.5
        with pytest.raises(CheckpointError, match=r"has datatype .+, expected one of float16"):
            tensors.read("x", 3)


def read_all(path: Path) -> None:
    """Every number of a file; those of torch.save in this process, which is quicker."""
    if path.suffix == ".pt":
        for tensor in read_pickle(path).values():
            tensor.clone()
        return
    with open_tensors(path) as tensors:
        for stored in tensors.stored.values():
            stored.load()


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
        read_all(path)


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
