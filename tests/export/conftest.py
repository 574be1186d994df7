"""One small layer, exported once; and single graphs of other layers, which are quick."""

from collections.abc import Callable
from pathlib import Path

import pytest

from export.graphs import trace_graph
from export.module import export_module
from export.onnx_file import tidy_graph, write_graphs
from export.progress import STEPS
from export.verify import Run, open_graph
from model.attention import MultiHeadAttention
from model.contract import FUSED_WEIGHTS, AttentionSpec
from model.weights import Weights

Open = Callable[[Weights], Run]


@pytest.fixture(scope="session")
def weights() -> Weights:
    """Of a layer whose sizes are all different."""
    return Weights.random(AttentionSpec(12, 3, kdim=8, vdim=10), seed=1)


@pytest.fixture(scope="session")
def exported(tmp_path_factory: pytest.TempPathFactory, weights: Weights) -> Path:
    """The directory of version 1 of the layer: read it, do not write there."""
    models, steps = tmp_path_factory.mktemp("models"), list[str]()
    layer = MultiHeadAttention.from_weights(weights)
    version = export_module(layer, models, name="small", on_step=steps.append)
    assert len(steps) == STEPS
    assert version == models / "small" / "1"
    return version


@pytest.fixture
def open_weights(tmp_path: Path) -> Open:
    """Make one graph of some weights, ``fused_weights``, and open it in onnxruntime."""

    def open_(weights: Weights) -> Run:
        proto = trace_graph(MultiHeadAttention.from_weights(weights), FUSED_WEIGHTS)
        tidy_graph(proto, weights.spec, weights)
        write_graphs({FUSED_WEIGHTS.file: proto}, tmp_path)
        return open_graph(tmp_path / FUSED_WEIGHTS.file)

    return open_
