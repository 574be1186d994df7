"""Which cases a graph is asked, and what counts as its error."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.gpu.parity import can_express, find_worst
from benchmarks.gpu.stage import BOUNDS, Stage
from export.cases import Case, compute_cases
from export.runtime import Run
from export.verify import find_scale
from model.contract import (
    DECOMPOSED,
    FUSED,
    FUSED_BIAS,
    PRECISIONS,
    QUERY,
    AttentionSpec,
    GraphSpec,
)
from model.weights import Weights

WEIGHTS = Weights.random(AttentionSpec(12, 3, kdim=8, vdim=10), seed=1)


@pytest.fixture(scope="module", name="cases")
def compute() -> list[Case]:
    return list(compute_cases(WEIGHTS, [(2, 4, 5)]))


@pytest.mark.parametrize(
    ("graph", "hidings"),
    [
        (FUSED, ["none", "key_mask"]),
        (GraphSpec("causal", (QUERY,), ("output",)), ["causal_top_left"]),
    ],
)
def test_a_graph_without_a_bias_is_asked_what_it_can_express(
    cases: list[Case], graph: GraphSpec, hidings: list[str]
) -> None:
    assert [c.hiding.name for c in cases if can_express(graph, c.hiding.name)] == hidings
    assert all(can_express(FUSED_BIAS, case.hiding.name) for case in cases)


def answer(cases: list[Case], error: float) -> Run:
    """A graph whose weights are off by `error` in its last case."""
    waiting = list(cases)

    def run(names: list[str], _: object) -> list[np.ndarray]:
        case = waiting.pop(0)
        output, weights = (case.expected[name].copy() for name in names)
        weights[0, 2, 3, 4] += 0 if waiting else error
        return [output, weights]

    return run


@pytest.mark.parametrize("error", [0.0, 0.25])
def test_the_largest_error_of_all_outputs_and_cases_counts(cases: list[Case], error: float) -> None:
    found = find_worst(answer(cases, error), DECOMPOSED, cases)
    assert found == pytest.approx(error / find_scale("attention_weights", cases[-1]))


def test_one_number_that_is_none_is_no_small_error(cases: list[Case]) -> None:
    assert np.isnan(find_worst(answer(cases, np.nan), DECOMPOSED, cases))


def test_float16_may_be_off_by_a_hundredth_and_float32_on_cuda_by_a_thousandth(
    tmp_path: Path,
) -> None:
    assert [BOUNDS["cuda", precision] for precision in PRECISIONS] == [1e-3, 1e-2]
    assert Stage(tmp_path, "cuda").round_s > 0
