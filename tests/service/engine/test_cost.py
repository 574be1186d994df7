"""What is small enough to be computed where it came."""

import numpy as np
import pytest

from model.contract import AttentionSpec
from service.engine.cost import SCORE_OPERATIONS, SMALL_OPERATIONS, count_operations, is_small
from service.engine.signature import Prepared, check_request
from service.engine.sizes import Limits, Sizes
from service.inference import NO_WEIGHTS, Inference

B, L, S, D, H, KDIM, VDIM = 2, 4, 5, 6, 3, 7, 8


LIMITS = Limits(2**10, 2**30, 2**40, 2**40)


def prepare(rows: int, length: int, keys: int, spec: AttentionSpec) -> Prepared:
    """A request of these sizes; its numbers cost nothing."""
    sizes = ((length, spec.d_model), (keys, spec.kdim), (keys, spec.vdim))
    tokens = (np.broadcast_to(np.float32(0), (rows, count, width)) for count, width in sizes)
    tensors = dict(zip(("query", "key", "value"), tokens, strict=True))
    return check_request(spec, LIMITS, Inference(tensors, weights=NO_WEIGHTS))


def test_the_operations_are_those_of_the_formula() -> None:
    """Products of matrices, [m, n] x [n, k] for m n k each, one after the other."""
    spec = AttentionSpec(D, H, kdim=KDIM, vdim=VDIM)
    projections = L * D * D + S * KDIM * D + S * VDIM * D + L * D * D
    products = H * (L * (D // H) * S) + H * (L * S * (D // H))
    softmax = H * L * S * SCORE_OPERATIONS
    wanted = B * (projections + products + softmax)
    assert count_operations(spec, Sizes(B, H, L, S)) == wanted
    assert prepare(B, L, S, spec).operations == wanted


@pytest.mark.parametrize(
    ("spec", "rows", "length", "small"),
    [
        pytest.param(AttentionSpec(512, 8), 1, 16, True, id="a sentence"),
        pytest.param(AttentionSpec(512, 8), 4, 16, False, id="four of them"),
        pytest.param(AttentionSpec(6, 3), 1, 300, True, id="narrow"),
        pytest.param(AttentionSpec(6, 3), 1, 1800, False, id="narrow and long: its softmax counts"),
        pytest.param(AttentionSpec(6, 3), 200, 120, False, id="narrow and many"),
    ],
)
def test_small_is_what_takes_less_than_a_millisecond(
    spec: AttentionSpec, rows: int, length: int, small: bool
) -> None:
    assert is_small(prepare(rows, length, length, spec)) is small


def test_the_bound_itself_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = AttentionSpec(D, H)
    prepared = prepare(B, L, S, spec)
    for bound, small in ((prepared.operations, True), (1, False)):
        monkeypatch.setattr("service.engine.cost.SMALL_OPERATIONS", bound)
        assert is_small(prepared) is small


def test_numbers_of_any_size_are_counted() -> None:
    sizes = Sizes(2**16, 3, 2**15, 2**15)
    assert count_operations(AttentionSpec(6, 3), sizes) > 2**50 > SMALL_OPERATIONS
