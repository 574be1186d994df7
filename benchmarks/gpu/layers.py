"""The layers that are measured, and the command that exports those of them that are not there.

``python -m benchmarks.gpu.layers FOLDER``, on a machine with torch and the packages of `export`.
"""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from model.contract import MANIFEST_FILE, PRECISIONS, AttentionSpec
from model.weights import Weights

SEED: Final = 1


@dataclass(frozen=True)
class Layer:
    """A layer with random weights.

    Attributes:
        name: of its model.
        spec: its sizes and precision.
    """

    name: str
    spec: AttentionSpec

    def draw_weights(self) -> Weights:
        """The weights before they are rounded: the same on every machine."""
        return Weights.random(self.spec, SEED)

    def find(self, models: Path) -> Path:
        """The directory of its version in a repository."""
        return models / self.name / "1"


# Flash takes heads whose width is a multiple of 8.
SMALL: Final = tuple(
    Layer(f"small.{precision}", AttentionSpec(48, 3, kdim=40, vdim=24, precision=precision))
    for precision in PRECISIONS
)
WIDE: Final = tuple(
    Layer(f"wide.{precision}", AttentionSpec(512, 8, precision=precision))
    for precision in PRECISIONS
)
LAYERS: Final = (*SMALL, *WIDE)


def find_absent(models: Path) -> list[Layer]:
    """The layers that a repository does not hold."""
    return [layer for layer in LAYERS if not (layer.find(models) / MANIFEST_FILE).is_file()]


def export_absent(models: Path) -> None:
    """Export the layers that are not there."""
    from export.module import export_module
    from model.attention import MultiHeadAttention

    for layer in find_absent(models):
        module = MultiHeadAttention.from_weights(layer.draw_weights())
        export_module(module, models, name=layer.name, precision=layer.spec.precision)


if __name__ == "__main__":
    export_absent(Path(sys.argv[1]))
