"""The graph files of one layer, which fit the weights of every other layer of its sizes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from export.graphs import trace_graph
from export.onnx_file import encode_graph, write_weights
from model.attention import MultiHeadAttention
from model.contract import GRAPHS, WEIGHTS_FILE, AttentionSpec
from model.weights import Weights


@dataclass(frozen=True, slots=True)
class Template:
    """Graphs whose weights are still to come.

    Attributes:
        spec: the sizes of the layers that it fits.
        files: the bytes of each graph's file, by the name of the file.
    """

    spec: AttentionSpec
    files: Mapping[str, bytes]

    def write(self, weights: Weights, directory: Path) -> None:
        """Write the graphs and, beside them, the weights of a layer of these sizes.

        Raises:
            ValueError: if the layer has other sizes.
        """
        if weights.spec != self.spec:
            raise ValueError(f"the weights are of {weights.spec}, expected {self.spec}")
        for name, content in self.files.items():
            (directory / name).write_bytes(content)
        write_weights(weights, directory / WEIGHTS_FILE)


def trace_template(layer: MultiHeadAttention, on_step: Callable[[str], None]) -> Template:
    """Trace all graphs of a layer; its weights may be absent, as in `marks.sketch_layer`.

    Args:
        layer: in evaluation mode.
        on_step: called after each graph.

    Raises:
        VerificationError: if a graph has a tensor that is not one of the layer's weights.
    """
    files = {}
    for graph in GRAPHS:
        files[graph.file] = encode_graph(trace_graph(layer, graph))
        on_step(f"traced {graph.name}")
    return Template(layer.spec, files)
