"""Proof that exported graphs compute what the formula says, at sizes that were not traced."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from export.cases import Case, compute_cases
from export.errors import VerificationError
from export.hidings import SIZES, Array, Hiding, graph_inputs
from export.runtime import Provider, Run, graphs_of, open_graph
from model.contract import (
    DECOMPOSED,
    FUSED,
    FUSED_CAUSAL,
    KEY,
    QUERY,
    VALUE,
    GraphSpec,
    Precision,
)
from model.weights import Weights

if TYPE_CHECKING:
    from model.attention import MultiHeadAttention

TOLERANCES: Final[dict[Precision, float]] = {"fp32": 1e-5, "fp16": 1e-2}
"""Largest error against float64 by precision, in units of `find_scale`."""

SMALL_SCORE = 30.0
"""Up to this bound of its scores a layer is held to its tolerance itself: three times float32's
unit roundoff (2^-23) for each unit of a score. A seventh of it was found at 450."""
LARGEST_SCORE = 100 * SMALL_SCORE
"""Above it errors of 1e-3 would pass, and float32 cannot tell such a layer from a wrong one."""

SMALLEST = float(np.finfo(np.float32).tiny)
"""Of an output that is zero throughout, such as that of a layer before its training."""

HIDINGS = {FUSED: ("none", "key_mask"), FUSED_CAUSAL: ("causal_top_left",)}
"""The hidings that a graph can express; each of the others takes a bias, and so all of them."""

Report = dict[str, dict[str, dict[str, float]]]


def verify_layer(layer: "MultiHeadAttention", weights: Weights) -> None:
    """Compare the layer's own `forward` with the float64 reference.

    The graphs are traced from the parts of the layer, so a class that overrides `forward`, or a
    hook, would be lost in them.

    Raises:
        VerificationError: if it misses the tolerance of fp32, in which it computes.
    """
    for case in compute_cases(weights, SIZES[:4], weights.spec.causal):
        if case.hiding.name in ("none", "mask", "mask_per_head"):
            found = measure_errors(as_run(layer, case.hiding), DECOMPOSED, case)
            check_errors(found, "the layer's forward", case)


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
    directory: Path,
    cases: Iterable[Case],
    provider: Provider = "cpu",
    on_graph: Callable[[GraphSpec], None] = lambda _: None,
) -> Report:
    """Compare every graph in `directory` that `provider` runs with the float64 reference.

    Args:
        directory: holds the ONNX files and their weights.
        cases: `ExpectedCases` of the layer; gone through once for each graph.
        provider: where the graphs are run.
        on_graph: called when a graph is done.

    Returns:
        The report: for each graph and hiding the largest error of output and weights, in units of
        `find_scale`.

    Raises:
        VerificationError: if a graph misses the tolerance of its precision, naming graph,
            hiding, sizes and error.
        ExportError: if onnxruntime cannot run a graph on `provider`.
    """
    report: Report = {}
    for graph in graphs_of(provider):
        report[graph.name] = verify_graph(
            open_graph(directory / graph.file, provider), graph, cases
        )
        on_graph(graph)
    return report


def verify_graph(run: Run, graph: GraphSpec, cases: Iterable[Case]) -> dict[str, dict[str, float]]:
    """Largest errors of one graph, by hiding and output.

    Raises:
        VerificationError: if one misses the tolerance.
    """
    errors: dict[str, dict[str, float]] = {}
    for case in cases:
        if case.hiding.name not in HIDINGS.get(graph, (case.hiding.name,)):
            continue
        found = measure_errors(run, graph, case)
        check_errors(found, f"graph '{graph.name}'", case)
        worst = errors.setdefault(case.hiding.name, {})
        worst |= {name: max(error, worst.get(name, 0.0)) for name, error in found.items()}
        del case  # before the next one is read
    return errors


def measure_errors(run: Run, graph: GraphSpec, case: Case) -> dict[str, float]:
    """Largest error of each output of one run, in units of `find_scale`."""
    answers = run(list(graph.outputs), case.tokens | graph_inputs(graph, case.tokens, case.hiding))
    return {
        name: measure_error(answer, case.expected[name]) / find_scale(name, case)
        for name, answer in zip(graph.outputs, answers, strict=True)
    }


def measure_error(answer: Array, expected: NDArray[np.float64]) -> float:
    """Largest absolute error."""
    error = answer - expected
    return float(np.abs(error, out=error).max())


def find_scale(name: str, case: Case) -> float:
    """What errors of an output are held against: its largest number, and more for large scores.

    float32 has the same number of digits for small numbers as for large ones. An error of a score
    becomes one of its weight, relative to that: it grows with the score, or rather with the query
    and the key that it is the product of.
    Higham, "Accuracy and Stability of Numerical Algorithms" (2002), section 3.1.
    """
    of_scores = min(max(SMALL_SCORE, case.score_bound), LARGEST_SCORE) / SMALL_SCORE
    expected = case.expected[name]
    return of_scores * max(float(expected.max()), -float(expected.min()), SMALLEST)


def check_errors(errors: dict[str, float], subject: str, case: Case) -> None:
    """Refuse an error above the tolerance of the case's precision.

    Raises:
        VerificationError: naming the subject, output, hiding, sizes and error.
    """
    tolerance = TOLERANCES[case.precision]
    for name, error in errors.items():
        if not error <= tolerance:  # so that NaN fails
            batch, length, keys = case.sizes
            raise VerificationError(
                f"{subject}: {name} differs from float64 by {error:.2g} of its scale with hiding "
                f"'{case.hiding.name}' at batch size {batch}, query length {length}, key length "
                f"{keys}, expected at most {tolerance:g}; either it computes something else than "
                "softmax(q k^T / sqrt(d_k)) v, or the weights are too large for "
                f"{case.precision.replace('fp', 'float')}"
            )


def largest_error(report: Report) -> float:
    """The largest number in a report of `verify_graphs`."""
    return max(
        error for graph in report.values() for hiding in graph.values() for error in hiding.values()
    )
