"""Every graph under every hiding, against the formula in float64."""

from collections.abc import Iterable, Iterator
from contextlib import closing

import numpy as np

from benchmarks.endurance.figure import Figure
from benchmarks.gpu.layers import LAYERS, Layer
from benchmarks.gpu.stage import Stage
from export.cases import Case, ExpectedCases
from export.hidings import draw_tokens
from export.runtime import Run, graphs_of
from export.verify import measure_errors
from model.contract import BIAS, KEY_LENGTHS, NO_KEY_SCORE, WEIGHTS, GraphSpec

# One more in float32 than the sum of S equal numbers may be off.
UNIFORM_ERROR = 1e-6
B, L, S, BLIND_ROW, FIRST_HIDDEN = 2, 9, 24, 4, 17


def parity(stage: Stage) -> Iterator[Figure]:
    """Compare every graph with float64 under every hiding."""
    for layer in LAYERS:
        with closing(ExpectedCases(layer.draw_weights())) as cases:
            for graph in graphs_of(stage.provider):
                error = find_worst(stage.open(layer, graph), graph, cases)
                yield Figure(f"{layer.name} {graph.name}: error", error, most=stage.bound(layer))


def find_worst(run: Run, graph: GraphSpec, cases: Iterable[Case]) -> float:
    """The largest error of a graph, over all outputs of all cases that it can express."""
    errors = [
        error
        for case in cases
        if can_express(graph, case.hiding.name)
        for error in measure_errors(run, graph, case).values()
    ]
    return float(np.max(errors))  # NaN, if one of them is


def can_express(graph: GraphSpec, hiding: str) -> bool:
    """Whether a graph can hide so: any way with a bias, else by lengths, or causal by itself."""
    if BIAS in graph.inputs:
        return True
    return hiding in (("none", "key_mask") if KEY_LENGTHS in graph.inputs else ("causal_top_left",))


def blind(stage: Stage) -> Iterator[Figure]:
    """Look at rows that see no key, and at the weights of hidden keys."""
    for layer in LAYERS:
        for graph in graphs_of(stage.provider):
            if WEIGHTS in graph.outputs:
                yield from look_at_weights(stage.open(layer, graph), graph, layer)


def look_at_weights(run: Run, graph: GraphSpec, layer: Layer) -> Iterator[Figure]:
    """Run one graph with a row that sees no key and another that sees some."""
    bias = np.zeros((B, 1, L, S), np.float32)
    bias[:, :, BLIND_ROW] = NO_KEY_SCORE
    bias[:, :, BLIND_ROW + 1, FIRST_HIDDEN:] = -np.inf
    tokens = draw_tokens(np.random.default_rng(3), layer.spec, B, L, S)
    (weights,) = run([WEIGHTS], tokens | {BIAS: bias})
    name = f"{layer.name} {graph.name}"
    away = float(np.abs(weights[:, :, BLIND_ROW] - 1 / S).max())
    yield Figure(f"{name}: blind row, away from uniform", away, most=UNIFORM_ERROR)
    hidden = float(np.abs(weights[:, :, BLIND_ROW + 1, FIRST_HIDDEN:]).max())
    yield Figure(f"{name}: weight of a hidden key", hidden, most=0)
