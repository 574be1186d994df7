"""DistilBERT, and XLM and FlauBERT, which it took its names from."""

from collections.abc import Iterable

from export.checkpoints.config import Config
from export.checkpoints.family import Family, find_prefixes
from export.checkpoints.linear_maps import read_linear_maps
from export.checkpoints.settings import check_model_type
from export.checkpoints.tensors import Tensors
from model.weights import Weights

TYPES = ("distilbert", "flaubert", "xlm")


def find(names: Iterable[str]) -> set[str]:
    """Layers such as ``transformer.layer.3.attention``."""
    return find_prefixes(names, "q_lin.weight", "k_lin.weight", "v_lin.weight")


def read(tensors: Tensors, config: Config) -> Weights:
    """Read ``q_lin``, ``k_lin``, ``v_lin`` and ``out_lin``.

    Raises:
        CheckpointError: if a tensor is missing, unfit or unknown, or if ``config.json`` tells of
            another network.
    """
    check_model_type(config, TYPES)
    return read_linear_maps(
        tensors, config, query="q_lin", key="k_lin", value="v_lin", output="out_lin"
    )


DISTILBERT = Family("DistilBERT", "q_lin, k_lin, v_lin, out_lin", find, read)
