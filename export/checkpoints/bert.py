"""BERT and its descendants with the same names, such as RoBERTa, ELECTRA and MiniLM."""

from collections.abc import Iterable

from export.checkpoints.config import Config
from export.checkpoints.family import Family, find_prefixes
from export.checkpoints.linear_maps import read_linear_maps
from export.checkpoints.tensors import Tensors
from export.errors import CheckpointError
from model.weights import Weights

# Settings of the family, and under which value the attention is plain.
PLAIN = {"position_embedding_type": "absolute", "attention_type": "original_full"}
# Those whose attention is not plain and whose layers do not show it.
UNLIKE = ("layoutlmv2", "layoutlmv3", "roformer")


def find(names: Iterable[str]) -> set[str]:
    """Layers such as ``encoder.layer.3.attention``, or ``crossattention`` in a decoder."""
    return find_prefixes(names, "self.query.weight", "self.key.weight", "self.value.weight")


def read(tensors: Tensors, config: Config, layer: str) -> Weights:
    """Read ``self.query``, ``self.key``, ``self.value`` and ``output.dense``.

    ``output.LayerNorm``, which follows the attention, is not part of it and is left out.

    Raises:
        CheckpointError: if a tensor is missing, unfit or unknown, as are those of relative and
            rotary positions and of global tokens, or if `check_config` raises.
    """
    check_config(config)
    return read_linear_maps(
        tensors.below(layer),
        config,
        query="self.query",
        key="self.key",
        value="self.value",
        output="output.dense",
    )


def check_config(config: Config) -> None:
    """Refuse a network whose ``config.json`` says that its attention is not plain.

    Raises:
        CheckpointError: naming the setting.
    """
    values = config.read_values()
    for name, plain in PLAIN.items():
        if values.get(name, plain) != plain:
            raise CheckpointError(
                f"config.json says {name} is {values[name]!r}, which the formula does not have; "
                f"expected {plain!r}"
            )
    if values.get("model_type") in UNLIKE:
        raise CheckpointError(
            f"config.json says model_type is {values['model_type']!r}, whose attention does more "
            "than the formula; expected a network of plain attention"
        )


BERT = Family("BERT (attention.self.query, attention.output.dense)", find, read)
