"""Proof that exported graphs compute what the formula says, at sizes that were not traced."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from export.errors import VerificationError
from model.contract import (
    BIAS,
    DECOMPOSED,
    FUSED,
    GRAPHS,
    KEY,
    KEY_LENGTHS,
    NO_KEY_SCORE,
    OUTPUT,
    QUERY,
    VALUE,
    WEIGHTS,
    AttentionSpec,
    GraphSpec,
)
from model.reference import attend
from model.weights import Weights

if TYPE_CHECKING:
    from model.attention import MultiHeadAttention

TOLERANCE = 1e-5
"""Largest absolute error of float32 against float64 for inputs of unit scale."""

SIZES = (
    (1, 1, 1),
    (4, 1, 3),
    (2, 5, 7),
    (3, 16, 9),
    (1, 33, 128),
    (2, 100, 31),
    (1, 256, 256),
)
"""What `SIZE_NAMES` says, in its order; none is the size of the traced example."""

SIZE_NAMES = ("batch_size", "query_length", "key_length")
"""As the record of the verification calls them."""

Array = NDArray[np.float32]
Report = dict[str, dict[str, dict[str, float]]]
Run = Callable[[list[str], dict[str, NDArray[Any]]], list[Array]]


@dataclass(frozen=True, slots=True)
class Hiding:
    """One way to hide keys, in the words of the tensor contract.

    Attributes:
        name: for the report.
        mask: bool ``[B or 1, H or 1, L, S]``.
        key_mask: bool ``[B, S]``, a non-empty run of real keys first.
        bias: float32 ``[B or 1, H or 1, L, S]``.
        causal: which alignment, if any.
    """

    name: str
    mask: NDArray[np.bool_] | None = None
    key_mask: NDArray[np.bool_] | None = None
    bias: Array | None = None
    causal: Literal[False, "top_left", "bottom_right"] = False


def verify_layer(layer: "MultiHeadAttention", weights: Weights) -> None:
    """Compare the layer's own `forward` with the float64 reference.

    The graphs are traced from the parts of the layer, so a class that overrides `forward`, or a
    hook, would be lost in them.

    Raises:
        VerificationError: if it misses `TOLERANCE`.
    """
    generator = np.random.default_rng(0)
    for sizes in SIZES[:4]:
        tokens = draw_tokens(generator, weights.spec, *sizes)
        for hiding in draw_hidings(generator, weights.spec, *sizes):
            if hiding.name in ("none", "mask", "mask_per_head"):
                found = measure_errors(as_run(layer, hiding), DECOMPOSED, weights, tokens, hiding)
                check_errors(found, "the layer's forward", hiding, sizes)


def as_run(layer: "MultiHeadAttention", hiding: Hiding) -> Run:
    """The layer in the place of a graph; it takes the mask itself, not the bias made of it."""
    import torch

    def run(_: list[str], feeds: dict[str, NDArray[Any]]) -> list[Array]:
        tokens = [torch.from_numpy(feeds[name]) for name in (QUERY, KEY, VALUE)]
        mask = None if hiding.mask is None else torch.from_numpy(hiding.mask)
        with torch.no_grad():
            return [a.numpy() for a in layer(*tokens, mask, return_weights=True)]

    return run


def verify_graphs(
    directory: Path, weights: Weights, on_graph: Callable[[GraphSpec], None] = lambda _: None
) -> Report:
    """Compare every graph in `directory` with the float64 reference.

    Args:
        directory: holds the ONNX files and their weights.
        weights: of the layer.
        on_graph: called when a graph is done.

    Returns:
        The report: for each graph and hiding the largest absolute error of output and weights.

    Raises:
        VerificationError: if a graph misses `TOLERANCE`, naming graph, hiding, sizes and error.
    """
    report: Report = {}
    for graph in GRAPHS:
        report[graph.name] = verify_graph(open_graph(directory / graph.file), graph, weights)
        on_graph(graph)
    return report


def open_graph(path: Path) -> Run:
    """Open a graph on the CPU with the optimisations that serve it."""
    onnxruntime = load_runtime()
    options = onnxruntime.SessionOptions()
    # Errors only: shape inference holds the last axis of the weights to be 0, whatever the file
    # declares, and onnxruntime warns of it in every run.
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    run: Run = session.run
    return run


def load_runtime() -> ModuleType:
    """Import onnxruntime with its telemetry off, which is read once, at the import."""
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    import onnxruntime

    module: ModuleType = onnxruntime
    return module


def verify_graph(run: Run, graph: GraphSpec, weights: Weights) -> dict[str, dict[str, float]]:
    """Largest errors of one graph, by hiding and output.

    Raises:
        VerificationError: if one misses `TOLERANCE`.
    """
    errors: dict[str, dict[str, float]] = {}
    generator = np.random.default_rng(0)
    for sizes in SIZES:
        tokens = draw_tokens(generator, weights.spec, *sizes)
        for hiding in draw_hidings(generator, weights.spec, *sizes):
            if graph is FUSED and hiding.name not in ("none", "key_mask"):
                continue
            found = measure_errors(run, graph, weights, tokens, hiding)
            check_errors(found, f"graph '{graph.name}'", hiding, sizes)
            worst = errors.setdefault(hiding.name, {})
            worst |= {name: max(error, worst.get(name, 0.0)) for name, error in found.items()}
    return errors


def draw_tokens(
    generator: np.random.Generator, spec: AttentionSpec, batch: int, length: int, keys: int
) -> dict[str, Array]:
    """Query, key and value of unit scale, all different."""
    shapes = {
        QUERY: (batch, length, spec.d_model),
        KEY: (batch, keys, spec.kdim),
        VALUE: (batch, keys, spec.vdim),
    }
    return {name: draw(generator, shape) for name, shape in shapes.items()}


def draw(generator: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Standard normal numbers in float32."""
    return generator.standard_normal(shape, np.float32)


def draw_hidings(
    generator: np.random.Generator, spec: AttentionSpec, batch: int, length: int, keys: int
) -> Iterator[Hiding]:
    """The forms of hiding, among them rows that see no key."""
    heads = spec.num_heads
    yield Hiding("none")
    yield Hiding("mask", mask=generator.random((batch, 1, length, keys)) < 0.6)
    yield Hiding("mask_per_head", mask=generator.random((1, heads, length, keys)) < 0.6)
    rows = np.ones((batch, 1, length, keys), bool)
    rows[:, :, generator.integers(length)] = False
    yield Hiding("rows_without_keys", mask=rows)
    lengths = generator.integers(1, keys + 1, batch)
    yield Hiding("key_mask", key_mask=np.arange(keys) < lengths[:, None])
    yield Hiding("bias", bias=draw(generator, (batch, heads, length, keys)))
    yield Hiding("causal_top_left", causal="top_left")
    yield Hiding("causal_bottom_right", causal="bottom_right")


def measure_errors(
    run: Run, graph: GraphSpec, weights: Weights, tokens: dict[str, Array], hiding: Hiding
) -> dict[str, float]:
    """Largest absolute error of each output of one run."""
    wanted = attend(
        weights,
        **tokens,
        mask=hiding.mask,
        key_mask=hiding.key_mask,
        bias=hiding.bias,
        causal=hiding.causal,
    )
    expected = dict(zip((OUTPUT, WEIGHTS), wanted, strict=True))
    feeds = dict(tokens) | graph_inputs(graph, tokens, hiding)
    answers = run(list(graph.outputs), feeds)
    return {
        name: float(np.abs(answer - expected[name]).max())
        for name, answer in zip(graph.outputs, answers, strict=True)
    }


def graph_inputs(
    graph: GraphSpec, tokens: dict[str, Array], hiding: Hiding
) -> dict[str, NDArray[Any]]:
    """The hiding as the graph takes it: key lengths, or one additive bias."""
    batch, length, keys = *tokens[QUERY].shape[:2], tokens[KEY].shape[1]
    if graph is FUSED:
        all_keys = np.full(batch, keys, np.int64)
        return {KEY_LENGTHS: all_keys if hiding.key_mask is None else hiding.key_mask.sum(1)}
    visible = np.ones((1, 1, length, keys), bool)
    if hiding.mask is not None:
        visible = visible & hiding.mask
    if hiding.key_mask is not None:
        visible = visible & hiding.key_mask[:, None, None]
    if hiding.causal:
        shift = keys - length if hiding.causal == "bottom_right" else 0
        visible = visible & np.tri(length, keys, shift, bool)
    shown = np.float32(0) if hiding.bias is None else hiding.bias
    hidden = np.where(visible.any(-1, keepdims=True), -np.inf, NO_KEY_SCORE)
    return {BIAS: np.where(visible, shown, hidden).astype(np.float32)}


def check_errors(
    errors: dict[str, float], subject: str, hiding: Hiding, sizes: tuple[int, int, int]
) -> None:
    """Refuse an error above `TOLERANCE`.

    Raises:
        VerificationError: naming the subject, output, hiding, sizes and error.
    """
    for name, error in errors.items():
        if not error <= TOLERANCE:  # so that NaN fails
            batch, length, keys = sizes
            raise VerificationError(
                f"{subject}: {name} differs from float64 by {error:.2g} with hiding "
                f"'{hiding.name}' at batch size {batch}, query length {length}, key length "
                f"{keys}, expected at most {TOLERANCE:g}; either it computes something else than "
                "softmax(q k^T / sqrt(d_k)) v, or the weights are too large for float32"
            )


def largest_error(report: Report) -> float:
    """The largest number in a report of `verify_graphs`."""
    return max(
        error for graph in report.values() for hiding in graph.values() for error in hiding.values()
    )
