"""Where the checks run: the models, the provider, and what is wanted of it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.gpu.layers import Layer
from export.runtime import Provider, Run, open_graph
from model.contract import GraphSpec, Precision
from service.engine.loader import Loader
from service.engine.model import Model
from service.engine.sizes import Limits

BOUNDS: Final[dict[tuple[Provider, Precision], float]] = {
    ("cpu", "fp32"): 1e-5,
    ("cpu", "fp16"): 1e-2,
    ("cuda", "fp32"): 1e-3,
    ("cuda", "fp16"): 1e-2,
}
"""Largest absolute error against float64, for tokens of unit scale; TF32 is off."""

LIMITS: Final = Limits(256, 2**20, 2**32, 2**32)


@dataclass(frozen=True)
class Stage:
    """What every check is given.

    Attributes:
        models: the repository.
        provider: where the graphs run.
        round_s: for each side of a round that is timed.
    """

    models: Path
    provider: Provider
    round_s: float = 0.2

    def find(self, layer: Layer) -> Path:
        """The directory of the version of a layer."""
        return layer.find(self.models)

    def open(self, layer: Layer, graph: GraphSpec, provider: Provider | None = None) -> Run:
        """A graph in onnxruntime, without the server.

        Raises:
            ExportError: if it does not run on the provider.
        """
        return open_graph(self.find(layer) / graph.file, provider or self.provider)

    def load(self, layer: Layer) -> Model:
        """A model as the server loads it.

        Raises:
            StartError: if it does not run on the provider.
        """
        return Loader(self.provider, 1, LIMITS).load(self.find(layer))

    def bound(self, layer: Layer) -> float:
        """The largest error that passes."""
        return BOUNDS[self.provider, layer.spec.precision]
