"""A checkpoint that is open: its layers, their sizes, and the weights of each."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from export.checkpoints.choice import choose_layers
from export.checkpoints.config import Config
from export.checkpoints.detect import Found, find_layers
from export.checkpoints.files import open_tensors
from export.checkpoints.places import find_checkpoint
from export.checkpoints.tensors import Tensors
from export.errors import CheckpointError
from export.record import Source
from export.repository import hash_file
from model.contract import AttentionSpec, Causal
from model.weights import Weights


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """An open checkpoint.

    Attributes:
        path: the file.
        tensors: all of them.
        config: what they do not tell.
        hashes: SHA-256 of the files that were hashed so far, by name.
    """

    path: Path
    tensors: Tensors
    config: Config
    hashes: dict[str, str] = field(default_factory=dict)

    def number_layers(self) -> dict[Found, int]:
        """The number of each layer in counting order, from 0."""
        return {found: number for number, found in enumerate(find_layers(self.tensors))}

    def look_at(self, found: Found) -> tuple[AttentionSpec, list[str]]:
        """Sizes of a layer and the names of its tensors; no numbers are read.

        Raises:
            CheckpointError: why the layer cannot be imported.
        """
        tensors = self.tensors.without_numbers()
        return found.family.read(tensors, self.config, found.layer).spec, tensors.used

    def read(self, found: Found) -> tuple[Weights, Source]:
        """The weights of a layer, and where they come from.

        Raises:
            CheckpointError: naming the file, tensor or setting that is missing or unfit.
        """
        tensors = self.tensors.noting_use()
        weights = found.family.read(tensors, self.config, found.layer)
        files = sorted({tensors.stored[name].file for name in tensors.used})
        hashes = {name: self._hash(name) for name in files}
        return weights, Source(found.family.name, found.layer, hashes, tensors.used)

    def _hash(self, name: str) -> str:
        if name not in self.hashes:
            self.hashes[name] = hash_file(self.path.with_name(name))
        return self.hashes[name]


@contextmanager
def open_checkpoint(
    path: Path, num_heads: int | None = None, causal: Causal | None = None
) -> Iterator[Checkpoint]:
    """Open a checkpoint for the time of the block.

    Args:
        path: a file of a kind that `places.KINDS` lists, or a directory with one.
        num_heads: H; read from ``config.json`` beside the file unless given.
        causal: how its layers hide later keys by themselves; as their family does unless given.

    Raises:
        CheckpointError: if there is no such file, its kind is unknown, or it is damaged.
    """
    file = find_checkpoint(path)
    with open_tensors(file) as tensors:
        yield Checkpoint(file, tensors, Config(file, num_heads, causal=causal))


def read_checkpoint(
    path: Path, *, layer: str | None = None, num_heads: int | None = None
) -> Weights:
    """Read one attention layer.

    Args:
        path: a file of a kind that `places.KINDS` lists, or a directory with one.
        layer: dotted prefix of the layer; may be left out where the file holds one only.
        num_heads: H; read from ``config.json`` beside the file unless given.

    Returns:
        The layer in float32, which holds bfloat16 and float16 exactly.

    Raises:
        CheckpointError: naming the file, tensor or setting that is missing or unfit, or if
            `layer` is a pattern that fits more than one.
    """
    with open_checkpoint(path, num_heads) as checkpoint:
        found = choose_layers(checkpoint.tensors, layer)
        if len(found) > 1:
            raise CheckpointError(f"{layer!r} fits {len(found)} layers, expected one")
        weights, _ = checkpoint.read(found[0])
    return weights
