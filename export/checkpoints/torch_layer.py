"""``torch.nn.MultiheadAttention``, alone or inside ``nn.Transformer`` and its like."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from export.checkpoints.config import Config
from export.checkpoints.family import Family, find_prefixes
from export.checkpoints.plain import check_plain
from export.checkpoints.tensors import Tensors
from export.errors import CheckpointError
from model.contract import AttentionSpec
from model.weights import Weights

SEPARATE = ("q_proj_weight", "k_proj_weight", "v_proj_weight")
OTHERS = ("in_proj_bias", "out_proj.weight", "out_proj.bias")
EXTRA_KEYS = ("bias_k", "bias_v")


def find(names: Iterable[str]) -> set[str]:
    """Layers with ``in_proj_weight``, or the three matrices that kdim and vdim split it into."""
    return find_prefixes(names, "in_proj_weight", *SEPARATE)


def read(tensors: Tensors, config: Config) -> Weights:
    """Read the layer; ``in_proj_weight`` and ``in_proj_bias`` hold query, key, value in turn.

    ``add_zero_attn`` leaves no trace in a checkpoint, so it cannot be refused here.

    Raises:
        CheckpointError: if a tensor is missing, unfit or unknown, or ``add_bias_kv`` was set.
    """
    check_no_extra_key(tensors)
    spec = read_spec(tensors, config)
    d_model = spec.d_model
    W_q, W_k, W_v = read_matrices(tensors, spec)
    b_q, b_k, b_v = np.split(tensors.read_or_zeros("in_proj_bias", 3 * d_model), 3)
    weights = Weights(
        spec,
        W_q=W_q,
        b_q=b_q,
        W_k=W_k,
        b_k=b_k,
        W_v=W_v,
        b_v=b_v,
        fc_out=tensors.read("out_proj.weight", d_model, d_model),
        b_out=tensors.read_or_zeros("out_proj.bias", d_model),
    )
    matrices = ("in_proj_weight",) if "in_proj_weight" in tensors else SEPARATE
    check_plain(tensors, (*matrices, *OTHERS))
    return weights


def check_no_extra_key(tensors: Tensors) -> None:
    """Refuse what the formula does not have.

    Raises:
        CheckpointError: if the layer was made with ``add_bias_kv=True``.
    """
    for name in EXTRA_KEYS:
        if name in tensors:
            raise CheckpointError(
                f"tensor {tensors.prefix + name!r} of {tensors.file!r} comes from "
                "add_bias_kv=True, which adds a learned key to every sequence; expected a layer "
                "trained with add_bias_kv=False"
            )


def read_spec(tensors: Tensors, config: Config) -> AttentionSpec:
    """Sizes of the layer, from the shapes of its matrices."""
    if "in_proj_weight" in tensors:
        _, d_model = tensors.read_shape("in_proj_weight")
        return config.make_spec(d_model, d_model, d_model)
    (_, d_model), (_, kdim), (_, vdim) = (tensors.read_shape(name) for name in SEPARATE)
    return config.make_spec(d_model, kdim, vdim)


def read_matrices(tensors: Tensors, spec: AttentionSpec) -> list[NDArray[np.float32]]:
    """``[D, D]``, ``[D, kdim]`` and ``[D, vdim]``."""
    if "in_proj_weight" in tensors:
        return np.split(tensors.read("in_proj_weight", 3 * spec.d_model, spec.d_model), 3)
    widths = (spec.d_model, spec.kdim, spec.vdim)
    return [
        tensors.read(name, spec.d_model, width)
        for name, width in zip(SEPARATE, widths, strict=True)
    ]


TORCH_LAYER = Family("nn.MultiheadAttention", "in_proj_weight, out_proj", find, read)
