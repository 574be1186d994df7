"""BERT and its descendants with the same names, such as RoBERTa, ELECTRA and MiniLM."""

from collections.abc import Iterable

from export.checkpoints.config import Config
from export.checkpoints.family import Family, find_prefixes
from export.checkpoints.linear_maps import read_linear_maps
from export.checkpoints.tensors import Tensors
from export.errors import CheckpointError
from model.weights import Weights

RELATIVE = "self.distance_embedding.weight"


def find(names: Iterable[str]) -> set[str]:
    """Layers such as ``encoder.layer.3.attention``, or ``crossattention`` in a decoder."""
    return find_prefixes(names, "self.query.weight", "self.key.weight", "self.value.weight")


def read(tensors: Tensors, config: Config, layer: str) -> Weights:
    """Read ``self.query``, ``self.key``, ``self.value`` and ``output.dense``.

    ``output.LayerNorm``, which follows the attention, is not part of it and is left out.

    Raises:
        CheckpointError: if a tensor is missing or unfit, or the positions are relative.
    """
    tensors = tensors.below(layer)
    if RELATIVE in tensors:
        raise CheckpointError(
            f"tensor {tensors.prefix + RELATIVE!r} of {tensors.file!r} adds relative positions "
            "to the scores, which the formula does not have; expected a layer trained with "
            "position_embedding_type 'absolute'"
        )
    return read_linear_maps(
        tensors,
        config,
        query="self.query",
        key="self.key",
        value="self.value",
        output="output.dense",
    )


BERT = Family("BERT (attention.self.query, attention.output.dense)", find, read)
