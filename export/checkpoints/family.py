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
        name: of the class or of networks that have it.
        tensors: the names that tell a layer of it, for people.
        find: prefixes of the layers among the names of a file's tensors; "" is the file itself.
        read_layer: the layer, of its tensors and with its settings; raises `CheckpointError`. It
            decides by names, shapes and settings alone, never by numbers.
    """

    name: str
    tensors: str
    find: Callable[[Iterable[str]], set[str]]
    read_layer: Callable[[Tensors, Config], Weights]

    def read(self, tensors: Tensors, config: Config, layer: str) -> Weights:
        """The layer at a prefix.

        Raises:
            CheckpointError: naming the tensor or setting that is missing, unfit, or tells that
                the layer computes more than the formula.
        """
        return self.read_layer(tensors.below(layer), config.at(layer))

    def __str__(self) -> str:
        return f"{self.name} ({self.tensors})"


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
