"""The served graphs at other sizes than the demo's, without the seconds that tracing takes.

The graphs of all sizes have the same nodes; numbers, shapes and the count of heads differ.
"""

from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
from onnx import numpy_helper

from model.contract import FUSED_BIAS, FUSED_WEIGHTS, AttentionSpec
from model.weights import Weights
from service.engine.directories import DEMO
from service.engine.model import Model
from service.engine.session import load_runtime, open_session
from service.engine.sizes import Limits

LIMITS: Final = Limits(256, 2**20, 2**30, 2**30)
DEMO_SPEC: Final = AttentionSpec(d_model=6, num_heads=3)


def draw_weights(spec: AttentionSpec) -> Weights:
    """The weights of the model of these sizes."""
    return Weights.random(spec, seed=11)


def write_model(spec: AttentionSpec, folder: Path) -> Path:
    """Write the graphs that answer on the CPU; their directory."""
    directory = folder / f"sized-{spec.d_model}-{spec.num_heads}" / "1"
    directory.mkdir(parents=True)
    for graph in (FUSED_BIAS, FUSED_WEIGHTS):
        proto = onnx.load(DEMO / "demo" / "1" / graph.file)
        resize(proto, spec)
        onnx.save(proto, directory / graph.file)
    return directory


def open_model(directory: Path, spec: AttentionSpec, threads: int) -> Model:
    """The model in a directory, with so many threads for each run."""
    open_graph: Any = partial(
        open_session, load_runtime(), provider="cpu", intra_op_threads=threads
    )
    return Model(directory, spec, "cpu", open_graph, LIMITS)


def resize(proto: onnx.ModelProto, spec: AttentionSpec) -> None:
    """Give a graph of the demo other sizes and weights, in place."""
    weights = draw_weights(spec)
    arrays = {
        f"{name}.weight.T": getattr(weights, name).T for name in ("W_q", "W_k", "W_v", "fc_out")
    }
    offsets = {"W_q": "b_q", "W_k": "b_k", "W_v": "b_v", "fc_out": "b_out"}
    arrays |= {f"{name}.bias": getattr(weights, field) for name, field in offsets.items()}
    names = [tensor.name for tensor in proto.graph.initializer]
    assert sorted(names) == sorted(arrays)
    del proto.graph.initializer[:]
    proto.graph.initializer.extend(
        numpy_helper.from_array(np.ascontiguousarray(array), name) for name, array in arrays.items()
    )
    for value in (*proto.graph.input, *proto.graph.output):
        for axis in value.type.tensor_type.shape.dim:
            if axis.dim_value:
                was_width = axis.dim_value == DEMO_SPEC.d_model
                axis.dim_value = spec.d_model if was_width else spec.num_heads
    for node in proto.graph.node:
        for attribute in node.attribute:
            if attribute.name in ("q_num_heads", "kv_num_heads"):
                attribute.i = spec.num_heads
