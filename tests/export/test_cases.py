"""The cases of a verification: drawn alike each time, with what the formula says of them."""

from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from export.cases import ExpectedCases, compute_cases
from export.errors import ExportError
from export.hidings import SIZES
from model.weights import Weights


def test_cases_can_be_gone_through_again_and_are_what_the_reference_computed(
    weights: Weights,
) -> None:
    with closing(ExpectedCases(weights)) as kept:
        computed = list(compute_cases(weights, SIZES))
        for _ in range(2):
            for case, right in zip(kept, computed, strict=True):
                assert (case.sizes, case.hiding.name) == (right.sizes, right.hiding.name)
                for name, array in right.expected.items():
                    np.testing.assert_array_equal(case.expected[name], array)
                for name, tokens in right.tokens.items():
                    np.testing.assert_array_equal(case.tokens[name], tokens)


def test_every_size_comes_with_every_hiding(weights: Weights) -> None:
    cases = [(case.sizes, case.hiding.name) for case in compute_cases(weights, SIZES)]
    assert len(cases) == len(set(cases)) == 7 * 8


def test_what_a_layer_hides_by_itself_is_hidden_beside_the_mask(weights: Weights) -> None:
    for case in compute_cases(weights, [(2, 4, 5)], "bottom_right"):
        later = np.triu(np.ones((4, 5), bool), 2)
        if case.hiding.name == "none":
            assert not case.expected["attention_weights"][:, :, later].any()


def test_a_full_directory_of_temporary_files_is_named(
    weights: Weights, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = Path("/dev/full").open("w+b", buffering=0)  # noqa: SIM115 - as a TemporaryFile
    monkeypatch.setattr("export.cases.TemporaryFile", lambda: full)
    monkeypatch.setattr("export.cases.gettempdir", lambda: "/a")
    with full, pytest.raises(ExportError) as caught:
        ExpectedCases(weights)
    assert str(caught.value) == (
        "'/a' has no room for what the reference computes (No space left on device); make room or "
        "set TMPDIR to another directory"
    )
