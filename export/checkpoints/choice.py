"""Which layers of a checkpoint are meant: by a name, by a pattern, or all."""

from fnmatch import fnmatchcase

from export.checkpoints.detect import Found, detect, find_layers, list_names
from export.checkpoints.tensors import Tensors
from export.errors import CheckpointError

ALL = "all"
WILD = frozenset("*?[")


def is_pattern(wanted: str | None) -> bool:
    """Whether more than one layer may be meant."""
    return wanted is not None and (wanted == ALL or not WILD.isdisjoint(wanted))


def choose_layers(tensors: Tensors, wanted: str | None) -> list[Found]:
    """The layers that are meant, in counting order.

    Args:
        tensors: of the checkpoint.
        wanted: the prefix of a layer, or one above it with a single layer below; a pattern with
            ``*``, ``?`` or ``[...]`` for either; "all"; None where there is one layer only.

    Raises:
        CheckpointError: if there is none, or if one prefix means several: then they are listed.
    """
    if wanted is None or not is_pattern(wanted):
        return [detect(tensors, wanted)]
    found = find_layers(tensors)
    chosen = [one for one in found if wanted == ALL or is_match(one.layer, wanted.strip("."))]
    if not found:
        detect(tensors, None)  # which says what is expected of a checkpoint
    if not chosen:
        raise CheckpointError(
            f"{tensors.file!r} holds no attention layer at {wanted!r}, expected --layer with a "
            f"pattern of {list_names([one.layer for one in found])}"
        )
    return chosen


def is_match(layer: str, pattern: str) -> bool:
    """Whether the pattern fits the layer or a prefix above it."""
    parts = layer.split(".")
    above = (".".join(parts[:count]) for count in range(1, len(parts) + 1))
    return any(fnmatchcase(prefix, pattern) for prefix in above)
