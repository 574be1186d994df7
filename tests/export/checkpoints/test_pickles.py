"""The process that reads a file of ``torch.save``: bounded, and gone when it is not needed."""

import multiprocessing
import os
import signal
from pathlib import Path
from typing import Any

import pytest
import torch

from export.checkpoints import pickles
from export.checkpoints.pickles import open_pickle
from export.errors import CheckpointError

STATE = {"a.b": torch.arange(6.0).reshape(2, 3), "c": torch.arange(5.0).bfloat16()}


class Grow:
    """An object that takes a terabyte when it is unpickled, by means that torch allows."""

    def __reduce__(self) -> Any:
        return bytearray, (1 << 40,)


def save(content: object, path: Path) -> Path:
    torch.save(content, path)
    return path


def refusal_of(path: Path) -> str:
    with pytest.raises(CheckpointError) as caught, open_pickle(path):
        pass
    return str(caught.value)


@pytest.mark.parametrize("zipped", [True, False])
def test_tensors_come_over_as_they_are(zipped: bool, tmp_path: Path) -> None:
    state = STATE | {"turned": STATE["a.b"].T, "part": torch.arange(9)[3:5], "one": torch.tensor(3)}
    torch.save(state, tmp_path / "x.pt", _use_new_zipfile_serialization=zipped)
    with open_pickle(tmp_path / "x.pt") as tensors:
        assert tensors.names == state.keys()
        for name, tensor in state.items():
            stored = tensors.stored[name]
            assert stored.shape == tuple(tensor.shape)
            torch.testing.assert_close(stored.load(), tensor, rtol=0, atol=0)


def test_no_process_is_left_when_the_file_is_closed(tmp_path: Path) -> None:
    with open_pickle(save(STATE, tmp_path / "x.pt")):
        assert len(multiprocessing.active_children()) == 1
    assert not multiprocessing.active_children()


def test_a_pickle_that_takes_a_terabyte_is_refused(tmp_path: Path) -> None:
    path = save({"W_q.weight": Grow()}, tmp_path / "x.pt")
    assert refusal_of(path) == (
        f"checkpoint '{path}' needs more memory or time than a file of its size should; save "
        "layer.state_dict() again"
    )


def test_a_tensor_that_is_larger_than_its_file_is_refused_when_it_is_wanted(
    tmp_path: Path,
) -> None:
    path = save({"W": torch.zeros(1).expand(1 << 20, 1 << 20)}, tmp_path / "x.pt")
    with open_pickle(path) as tensors, pytest.raises(CheckpointError) as caught:
        tensors.read("W", 1 << 20, 1 << 20)
    assert str(caught.value) == (
        f"checkpoint '{path}' is damaged or cut off (tensor 'W' takes {1 << 42} bytes, the file "
        f"has {path.stat().st_size}); copy or download it again"
    )


def test_a_file_that_takes_too_long_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pickles, "TIMEOUT_S", 0)
    path = save(STATE, tmp_path / "x.pt")
    assert refusal_of(path) == (
        f"checkpoint '{path}' takes longer than 0 s to read, expected tensors alone; save "
        "layer.state_dict() again"
    )


def test_a_process_that_was_ended_for_what_it_used_is_reported(tmp_path: Path) -> None:
    path = save(STATE, tmp_path / "x.pt")
    with open_pickle(path) as tensors:
        (process,) = multiprocessing.active_children()
        assert process.pid
        os.kill(process.pid, signal.SIGXCPU)
        process.join()
        with pytest.raises(CheckpointError) as caught:
            tensors.read("c", 5)
    assert str(caught.value) == (
        f"checkpoint '{path}' needs more memory or time than a file of its size should; save "
        "layer.state_dict() again"
    )
