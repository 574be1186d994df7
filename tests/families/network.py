"""A network of a library, with what its own attention layers answer."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

# All different: batch, heads, query length, key length, width.
B, H, L, S, D = 2, 3, 4, 5, 12
OTHER_H = 4
"""Heads where a network has layers of two kinds."""

Answer = tuple[Tensor, Tensor]
Attend = Callable[[Tensor, Tensor, Tensor], Answer]
"""A layer of the library: query ``[B, L, D]``, key and value ``[B, S, D]`` (the same tensor), and
what is visible, bool ``[B, 1, L, S]``, to output ``[B, L, D]`` and weights ``[B, H, L, S]``."""


@dataclass(frozen=True)
class Network:
    """A network whose parameters are random.

    Attributes:
        save: write its checkpoint into a folder, and return the file.
        self_attention: layers by their prefixes in the file, whose query is the key.
        cross_attention: those that take another key.
        num_heads: to be given by hand, where the checkpoint does not tell it.
    """

    save: Callable[[Path], Path]
    self_attention: Mapping[str, Attend]
    cross_attention: Mapping[str, Attend]
    num_heads: int | None = None


def randomize(module: nn.Module) -> nn.Module:
    """Give all parameters random numbers, biases and norms too, and evaluation mode."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.uniform_(-0.5, 0.5, generator=generator)
    return module.eval().requires_grad_(False)


def add_mask(visible: Tensor) -> Tensor:
    """The additive mask of Hugging Face, of the same shape."""
    lowest = torch.finfo(torch.float32).min
    return torch.zeros(visible.shape).masked_fill(~visible, lowest)


def save_state(state: Mapping[str, Tensor], config: Any = None) -> Callable[[Path], Path]:
    """How to write a state_dict as safetensors, with a ``config.json`` where there is one."""
    import json

    from safetensors.torch import save_file

    def save(folder: Path) -> Path:
        path = folder / "model.safetensors"
        save_file({name: tensor.contiguous() for name, tensor in state.items()}, path)
        if config is not None:
            (folder / "config.json").write_text(json.dumps(config))
        return path

    return save
