"""What a family of checkpoints is."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from export.checkpoints.config import Config
from export.checkpoints.tensors import Tensors
from model.weights import Weights


@dataclass(frozen=True, slots=True)
class Family:
    """Checkpoints that name and store an attention layer in one way.

    Attributes:
        name: for messages.
        find: prefixes of the layers among the names of a file's tensors; "" is the file itself.
        read: the layer at a prefix; raises `CheckpointError`.
    """

    name: str
    find: Callable[[Iterable[str]], set[str]]
    read: Callable[[Tensors, Config, str], Weights]


def find_prefixes(names: Iterable[str], *endings: str) -> set[str]:
    """What stands before one of the endings: "a.b" of "a.b.W_q.weight", "" of "W_q.weight".

    Any one of a layer's tensors is enough, so that a missing one is missed by name.
    """
    return {
        f".{name}".removesuffix(f".{ending}")[1:]
        for name in names
        for ending in endings
        if f".{name}".endswith(f".{ending}")
    }
