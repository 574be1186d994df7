"""One small layer, exported once; and single graphs of other layers, which are quick."""

from collections.abc import Callable
from pathlib import Path

import pytest

from export.graphs import trace_graph
from export.module import export_module
from export.onnx_file import encode_graph, write_weights
from export.progress import count_steps
from export.runtime import Run, open_graph
from model.attention import MultiHeadAttention
from model.contract import FUSED_WEIGHTS, WEIGHTS_FILE, AttentionSpec
from model.weights import Weights
from tests.export.sharded import write_sharded

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
    assert len(steps) == count_steps()
    assert version == models / "small" / "1"
    return version


@pytest.fixture
def open_weights(tmp_path: Path) -> Open:
    """Make one graph of some weights, ``fused_weights``, and open it in onnxruntime."""

    def open_(weights: Weights) -> Run:
        proto = trace_graph(MultiHeadAttention.from_weights(weights), FUSED_WEIGHTS)
        (tmp_path / FUSED_WEIGHTS.file).write_bytes(encode_graph(proto))
        write_weights(weights, tmp_path / WEIGHTS_FILE)
        return open_graph(tmp_path / FUSED_WEIGHTS.file)

    return open_


@pytest.fixture
def sharded(tmp_path: Path) -> Path:
    """The directory of a checkpoint of four layers, in two shards, with its config."""
    return write_sharded(tmp_path / "network")
