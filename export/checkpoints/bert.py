"""BERT and its descendants with the same names, such as RoBERTa, ELECTRA and MiniLM."""

from collections.abc import Iterable

from export.checkpoints.config import Config
from export.checkpoints.family import Family, find_prefixes
from export.checkpoints.linear_maps import read_linear_maps
from export.checkpoints.settings import check_model_type, check_settings
from export.checkpoints.tensors import Tensors
from model.weights import Weights

TYPES = (
    "bert",
    "bert-generation",
    "camembert",
    "data2vec-text",
    "dpr",
    "electra",
    "ernie",
    "esm",
    "layoutlm",
    "markuplm",
    "megatron-bert",
    "rembert",
    "roberta",
    "roberta-prelayernorm",
    "roc_bert",
    "splinter",
    "tapas",
    "vilt",
    "visual_bert",
    "xlm-roberta",
    "xlm-roberta-xl",
    "xmod",
)
# Under which value the attention of a network with these settings is the formula.
PLAIN = {"position_embedding_type": "absolute", "attention_type": "original_full"}


def find(names: Iterable[str]) -> set[str]:
    """Layers such as ``encoder.layer.3.attention``, or ``crossattention`` in a decoder."""
    return find_prefixes(names, "self.query.weight", "self.key.weight", "self.value.weight")


def read(tensors: Tensors, config: Config) -> Weights:
    """Read ``self.query``, ``self.key``, ``self.value`` and ``output.dense``.

    ``output.LayerNorm``, which follows the attention, is not part of it and is left out.

    Raises:
        CheckpointError: if a tensor is missing, unfit or unknown, as are those of relative and
            rotary positions and of global tokens, or if ``config.json`` tells of such.
    """
    check_settings(config, PLAIN)
    check_model_type(config, TYPES)
    return read_linear_maps(
        tensors,
        config,
        query="self.query",
        key="self.key",
        value="self.value",
        output="output.dense",
    )


BERT = Family(
    "BERT, RoBERTa, ELECTRA, MiniLM", "self.query, self.key, self.value, output.dense", find, read
)
