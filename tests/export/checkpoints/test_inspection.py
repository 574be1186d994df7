"""What a checkpoint holds, told from headers alone."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from export.checkpoints import safetensors_file
from export.checkpoints.checkpoint import open_checkpoint
from export.checkpoints.inspection import LayerReport, inspect_layers
from model.attention import MultiHeadAttention

NUMBERS = 4 * 12 * 12 + 4 * 12


def inspect(path: Path, num_heads: int | None = None) -> list[LayerReport]:
    with open_checkpoint(path, num_heads) as checkpoint:
        return inspect_layers(checkpoint)


def test_layers_are_told_with_their_sizes_without_reading_a_number(
    sharded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(safetensors_file, "make_loader", lambda *_: None)
    reports = [asdict(report) for report in inspect(sharded)]
    assert reports[1] == {
        "number": 1,
        "name": "layers.0",
        "family": "MultiHeadAttention",
        "d_model": 12,
        "num_heads": 3,
        "kdim": 12,
        "vdim": 12,
        "parameters": NUMBERS,
        "datatype": "float32",
        "importable": True,
        "reason": "",
    }
    cross = reports[0]
    assert (cross["name"], cross["kdim"], cross["vdim"]) == ("cross", 8, 10)
    assert (cross["datatype"], cross["parameters"]) == ("bfloat16", 12 * (12 + 8 + 10 + 12 + 4))


def test_widths_are_told_where_the_heads_are_not_known(sharded: Path) -> None:
    (sharded / "config.json").unlink()
    report = inspect(sharded)[3]
    assert (report.d_model, report.num_heads, report.parameters) == (12, None, NUMBERS)
    assert not report.importable
    assert report.reason == (
        "the number of heads is not in 'model.safetensors.index.json', and no config.json beside "
        "it says num_attention_heads, num_heads, n_head, n_heads or nhead; give --num-heads"
    )
    assert inspect(sharded, num_heads=4)[3].num_heads == 4


def test_a_layer_that_is_unfit_is_told_beside_the_others(tmp_path: Path) -> None:
    state = MultiHeadAttention(12, 3).state_dict()
    half = {f"b.{name}": tensor.half() for name, tensor in state.items()}
    half["b.W_k.weight"] = torch.zeros(13, 12)
    save_file(
        {f"a.{name}": each for name, each in state.items()} | half, tmp_path / "x.safetensors"
    )
    (tmp_path / "config.json").write_text(json.dumps({"num_heads": 3}))
    good, bad = inspect(tmp_path)
    assert good.importable
    assert (bad.d_model, bad.datatype, bad.parameters) == (None, "float16+float32", NUMBERS + 12)
    assert bad.reason == (
        "tensor 'b.W_k.weight' of 'x.safetensors' has shape [13, 12], expected [12, 12]"
    )
