"""Layers that keep several maps in one matrix, one below the other."""

import numpy as np
from numpy.typing import NDArray

from export.checkpoints.tensors import Tensors
from model.contract import AttentionSpec
from model.weights import Weights

Map = tuple[NDArray[np.float32], NDArray[np.float32]]
"""A matrix ``[outputs, inputs]`` and a bias ``[outputs]``."""


def read_maps(
    tensors: Tensors, name: str, outputs: int, inputs: int, *, count: int, transposed: bool = False
) -> list[Map]:
    """Read a matrix and its bias that hold `count` maps in turn.

    Args:
        tensors: of the layer.
        name: stands for a ``weight`` and, if there is one, a ``bias``.
        outputs: rows of each map.
        inputs: columns of each map.
        count: of the maps.
        transposed: whether the file has ``[inputs, count * outputs]``, as the Conv1D of GPT-2.

    Raises:
        CheckpointError: if a tensor is missing or unfit.
    """
    rows = count * outputs
    stored = tensors.read(f"{name}.weight", *((inputs, rows) if transposed else (rows, inputs)))
    matrices = np.split(stored.T if transposed else stored, count)
    biases = np.split(tensors.read_or_zeros(f"{name}.bias", rows), count)
    return list(zip(matrices, biases, strict=True))


def join_maps(spec: AttentionSpec, query: Map, key: Map, value: Map, output: Map) -> Weights:
    """The layer of four maps."""
    (W_q, b_q), (W_k, b_k), (W_v, b_v), (fc_out, b_out) = query, key, value, output
    return Weights(
        spec, W_q=W_q, b_q=b_q, W_k=W_k, b_k=b_k, W_v=W_v, b_v=b_v, fc_out=fc_out, b_out=b_out
    )
