"""A checkpoint of four layers of two sizes, in two shards, with its config."""

import json
from pathlib import Path

import torch
from safetensors.torch import save_file

from model.attention import MultiHeadAttention

H = 3
SHARDS = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")


def write_sharded(directory: Path) -> Path:
    """Three layers that are 12 wide, and "cross" with keys of 8, which is in bfloat16."""
    directory.mkdir()
    torch.manual_seed(5)
    layers = {f"layers.{number}": MultiHeadAttention(12, H) for number in range(3)}
    layers["cross"] = MultiHeadAttention(12, H, kdim=8, vdim=10).bfloat16()
    shards: list[dict[str, torch.Tensor]] = [{}, {}]
    for name, layer in layers.items():
        for part, tensor in layer.state_dict().items():
            shards["W_v" in part or name == "cross"][f"{name}.{part}"] = tensor
    for name, tensors in zip(SHARDS, shards, strict=True):
        save_file(tensors, directory / name)
    places = {name: SHARDS[n] for n, tensors in enumerate(shards) for name in tensors}
    index = directory / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": places}))
    (directory / "config.json").write_text(json.dumps({"num_heads": H}))
    return directory
