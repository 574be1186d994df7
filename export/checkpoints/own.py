"""`model.MultiHeadAttention`, and the tutorial class whose names it shares."""

from collections.abc import Iterable

from export.checkpoints.config import Config
from export.checkpoints.family import Family, find_prefixes
from export.checkpoints.linear_maps import read_linear_maps
from export.checkpoints.tensors import Tensors
from model.weights import Weights

OUTPUTS = ("fc_out", "W_o")


def find(names: Iterable[str]) -> set[str]:
    """Layers with ``W_q``, ``W_k`` and ``W_v``; other networks have an ``fc_out`` too."""
    return find_prefixes(names, "W_q.weight", "W_k.weight", "W_v.weight")


def read(tensors: Tensors, config: Config) -> Weights:
    """Read ``W_q``, ``W_k``, ``W_v`` and ``fc_out``, or ``W_o`` as some spell it; not both.

    Raises:
        CheckpointError: if a tensor is missing, unfit or unknown.
    """
    output = next((name for name in OUTPUTS if f"{name}.weight" in tensors), OUTPUTS[0])
    return read_linear_maps(tensors, config, query="W_q", key="W_k", value="W_v", output=output)


OWN = Family("MultiHeadAttention", "W_q, W_k, W_v, fc_out or W_o", find, read)
