"""Sessions without onnxruntime, that note what they were asked for."""

from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from model.contract import GRAPHS, AttentionSpec, GraphSpec
from service.engine.masks import Hiding
from service.engine.model import Model
from service.engine.model_config import ModelConfig
from service.engine.session import Provider
from service.engine.signature import Prepared
from service.engine.sizes import Limits
from service.inference import WantedWeights, WeightsForm

B, L, S, D, H = 4, 5, 7, 6, 3
PREFIXES: Final = np.arange(S) < np.array([7, 1, 4, 6])[:, None]


class StandIn:
    """A session that notes what it was asked for, and answers the numbers of its rows.

    Args:
        graph: that it stands for.
        number: what it answers instead, in every place.
    """

    def __init__(self, graph: GraphSpec, number: float | None = None) -> None:
        self.feeds: list[dict[str, NDArray[Any]]] = []
        self._graph = graph
        self._number = number

    def run(
        self, names: list[str], feeds: dict[str, NDArray[Any]], _: Any = None
    ) -> list[NDArray[Any]]:
        assert names == list(self._graph.outputs)
        assert tuple(feeds) == self._graph.inputs
        self.feeds.append(feeds)
        batch, length, width = feeds["query"].shape
        shapes = {
            "output": (batch, length, width),
            "attention_weights": (batch, H, length, feeds["key"].shape[1]),
        }
        return [self._fill(shapes[name]) for name in names]

    def get_providers(self) -> list[str]:
        return ["CUDAExecutionProvider"]

    def _fill(self, shape: tuple[int, ...]) -> NDArray[np.float32]:
        if self._number is not None:
            return np.full(shape, self._number, np.float32)
        rows = np.arange(shape[0], dtype=np.float32)
        return np.broadcast_to(rows.reshape(-1, *(1 for _ in shape[1:])), shape).copy()


class Opener:
    """Opens stand-ins, and knows which files were opened."""

    def __init__(self, number: float | None = None) -> None:
        self.opened: list[str] = []
        self.sessions: dict[str, StandIn] = {}
        self._number = number

    def __call__(self, path: Path) -> StandIn:
        graph = next(graph for graph in GRAPHS if graph.file == path.name)
        self.opened.append(path.name)
        self.sessions[graph.name] = StandIn(graph, self._number)
        return self.sessions[graph.name]


def make_model(provider: Provider, open_graph: Any, **config: Any) -> Model:
    """Version 3 of a model of stand-ins."""
    spec, limits = AttentionSpec(D, H), Limits(256, 2**20, 2**30, 2**30)
    directory = Path("/models/layer/3")
    return Model(directory, spec, provider, open_graph, limits, ModelConfig(**config))


def prepare(hiding: Hiding | None = None, weights: WeightsForm = "none", rows: int = B) -> Prepared:
    """A checked request; query, key and value are all different."""
    generator = np.random.default_rng(6)
    query, key, value = (
        generator.standard_normal((rows, length, D)).astype(np.float32) for length in (L, S, S)
    )
    return Prepared(query, key, value, hiding or Hiding(), WantedWeights(weights))
