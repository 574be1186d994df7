"""Damaged checkpoints, given to the command: one line says what is wrong, and nothing is left."""

import json
import os
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from export.__main__ import main
from model.attention import MultiHeadAttention

D, H = 12, 3
INDEX = "model.safetensors.index.json"
State = dict[str, Tensor]


def make_state() -> State:
    """One layer."""
    torch.manual_seed(3)
    return {f"a.{name}": tensor for name, tensor in MultiHeadAttention(D, H).state_dict().items()}


class Touch:
    """An object that makes a directory when it is unpickled the ordinary way."""

    def __reduce__(self) -> Any:
        return os.mkdir, ("trace",)


def save(state: State, name: str = "x.safetensors", num_heads: int = H) -> Path:
    """Write a checkpoint and its config into the working directory."""
    Path("config.json").write_text(json.dumps({"num_heads": num_heads}))
    if name.endswith(".pt"):
        torch.save(state, name)
    else:
        save_file(state, name)
    return Path(name)


def cut_off() -> None:
    path = save(make_state())
    path.write_bytes(path.read_bytes()[:-1])


def cut_off_pickle() -> None:
    path = save(make_state(), "x.pt")
    path.write_bytes(path.read_bytes()[:-1])


def drop_a_tensor() -> None:
    state = make_state()
    del state["a.W_v.weight"]
    save(state)


def stretch_a_tensor() -> None:
    save(make_state() | {"a.fc_out.bias": torch.zeros(D + 1)})


def put_nan() -> None:
    state = make_state()
    state["a.W_k.weight"][5, 7] = torch.nan
    save(state)


def name_the_output_twice() -> None:
    save(make_state() | {"a.W_o.weight": torch.zeros(D, D)})


def name_a_tensor_twice() -> None:
    torch.save(make_state() | {"a": {"W_q": {"bias": torch.zeros(D)}}}, "x.pt")


def put_two_layers() -> None:
    save(make_state() | {f"b{name[1:]}": tensor for name, tensor in make_state().items()})


def say_five_heads() -> None:
    save(make_state(), num_heads=5)


def run_code() -> None:
    torch.save(make_state() | {"b": Touch()}, "x.pt")


def put_a_zip_bomb() -> None:
    torch.save(make_state() | {"b": torch.zeros(1 << 20)}, "y.pt")
    with zipfile.ZipFile("y.pt") as archive, zipfile.ZipFile("x.pt", "w") as bomb:
        for entry in archive.infolist():
            content = archive.read(entry)
            method = zipfile.ZIP_DEFLATED if len(content) > 1 << 20 else zipfile.ZIP_STORED
            bomb.writestr(entry.filename.replace("y/", "x/"), content, method)
    Path("y.pt").unlink()


def put_index(shard: str) -> Callable[[], None]:
    def write() -> None:
        save(make_state())
        places = dict.fromkeys(make_state(), "x.safetensors")
        Path(INDEX).write_text(json.dumps({"weight_map": places | {"a.W_q.bias": shard}}))

    return write


CASES = {
    "truncated": (
        cut_off,
        "x.safetensors",
        "checkpoint 'x.safetensors' is damaged or cut off (Error while deserializing header: "
        "incomplete metadata, file not fully covered); copy or download it again",
    ),
    "truncated pickle": (
        cut_off_pickle,
        "x.pt",
        "checkpoint 'x.pt' is damaged or cut off (not what torch.save writes); copy or download "
        "it again",
    ),
    "a missing tensor": (
        drop_a_tensor,
        "x.safetensors",
        "tensor 'a.W_v.weight' of 'x.safetensors' is missing; save the whole state_dict of the "
        "layer",
    ),
    "a wrong shape": (
        stretch_a_tensor,
        "x.safetensors",
        "tensor 'a.fc_out.bias' of 'x.safetensors' has shape [13], expected [12]",
    ),
    "NaN": (
        put_nan,
        "x.safetensors",
        "tensor 'a.W_k.weight' of 'x.safetensors' holds nan at [5, 7], expected finite float32 "
        "numbers; take a checkpoint from before the training diverged",
    ),
    "two output maps": (
        name_the_output_twice,
        "x.safetensors",
        "tensor 'a.W_o.weight' of 'x.safetensors' is none of the four maps; expected a layer that "
        "computes the formula alone, or a file without the tensor if the attention does not use it",
    ),
    "two tensors of one name": (
        name_a_tensor_twice,
        "x.pt",
        "checkpoint 'x.pt' names two tensors 'a.W_q.bias', expected one of each name; save "
        "layer.state_dict() alone",
    ),
    "a name that may mean two layers": (
        put_two_layers,
        "x.safetensors",
        "'x.safetensors' holds 2 attention layers, expected --layer with one of 'a', 'b'",
    ),
    "heads that do not divide": (
        say_five_heads,
        "x.safetensors",
        "'x.safetensors': d_model (12) must be a multiple of num_heads (5); give the --num-heads "
        "that the layer was trained with",
    ),
    "a pickle that runs code": (
        run_code,
        "x.pt",
        "checkpoint 'x.pt' holds the object 'posix.mkdir', expected tensors alone, because "
        "loading objects would run code from the file; save layer.state_dict(), not the layer",
    ),
    "a zip bomb": (
        put_a_zip_bomb,
        "x.pt",
        "checkpoint 'x.pt': its entry 'x/data/8' is compressed, from SIZE bytes that grow to "
        "4194304, expected bytes as they are; save layer.state_dict() with torch.save",
    ),
    "an index of a missing shard": (
        put_index("y.safetensors"),
        INDEX,
        f"shard 'y.safetensors' does not exist, expected the file that '{INDEX}' names; copy or "
        "download the whole directory again",
    ),
    "an index of a shard outside": (
        put_index("../x.safetensors"),
        INDEX,
        f"index '{INDEX}' puts tensor 'a.W_q.bias' into '../x.safetensors', which is not the name "
        "of a .safetensors file beside it; copy or download it again",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_damage_is_refused_in_one_line_and_leaves_nothing_behind(
    case: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    damage, file, line = CASES[case]
    monkeypatch.chdir(tmp_path)
    damage()
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    monkeypatch.setattr(sys, "argv", ["limelight-export", "checkpoint", file])
    with pytest.raises(SystemExit) as caught:
        main()
    if "SIZE" in line:  # zlib's to choose
        with zipfile.ZipFile(file) as archive:
            line = line.replace("SIZE", str(archive.getinfo("x/data/8").compress_size))
    assert caught.value.code == f"limelight-export: {line}"
    assert capsys.readouterr() == ("", "")
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
