"""The Annotated Transformer, https://nlp.seas.harvard.edu/annotated-transformer, and its copies."""

import re
from collections.abc import Iterable

from export.checkpoints.config import Config
from export.checkpoints.family import Family, find_prefixes
from export.checkpoints.linear_maps import read_linear_maps
from export.checkpoints.tensors import Tensors
from model.weights import Weights

MAPS = ("linears.0", "linears.1", "linears.2", "linears.3")


def find(names: Iterable[str]) -> set[str]:
    """Layers called attention, such as ``encoder.layers.0.self_attn``: others have lists too."""
    prefixes = find_prefixes(names, *(f"{name}.weight" for name in MAPS))
    return {prefix for prefix in prefixes if re.fullmatch(r"(.*\.)?\w*att\w*|", prefix)}


def read(tensors: Tensors, config: Config) -> Weights:
    """Read the maps of query, key and value and of the output, which are numbered in this order.

    Raises:
        CheckpointError: if a tensor is missing, unfit or unknown.
    """
    query, key, value, output = MAPS
    return read_linear_maps(tensors, config, query=query, key=key, value=value, output=output)


LINEARS = Family("Annotated Transformer", "linears.0, .1, .2, .3", find, read)
