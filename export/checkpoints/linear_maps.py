"""Layers that keep four ``nn.Linear`` under names of their own."""

from export.checkpoints.config import Config
from export.checkpoints.plain import check_plain, name_parts
from export.checkpoints.tensors import Tensors
from model.weights import Weights


def read_linear_maps(
    tensors: Tensors, config: Config, *, query: str, key: str, value: str, output: str
) -> Weights:
    """Read four linear maps; each name stands for a ``weight`` and, if there is one, a ``bias``.

    Args:
        tensors: of the layer.
        config: tells the number of heads.
        query: name of a map ``[D, D]``.
        key: of ``[D, kdim]``.
        value: of ``[D, vdim]``.
        output: of ``[D, D]``.

    Raises:
        CheckpointError: if a tensor is missing, unfit or unknown, or the number of heads is unfit.
    """
    d_model, _ = tensors.read_shape(f"{output}.weight")
    _, kdim = tensors.read_shape(f"{key}.weight")
    _, vdim = tensors.read_shape(f"{value}.weight")
    weights = Weights(
        spec=config.make_spec(d_model, kdim, vdim),
        W_q=tensors.read(f"{query}.weight", d_model, d_model),
        b_q=tensors.read_or_zeros(f"{query}.bias", d_model),
        W_k=tensors.read(f"{key}.weight", d_model, kdim),
        b_k=tensors.read_or_zeros(f"{key}.bias", d_model),
        W_v=tensors.read(f"{value}.weight", d_model, vdim),
        b_v=tensors.read_or_zeros(f"{value}.bias", d_model),
        fc_out=tensors.read(f"{output}.weight", d_model, d_model),
        b_out=tensors.read_or_zeros(f"{output}.bias", d_model),
    )
    check_plain(tensors, name_parts(query, key, value, output))
    return weights
