"""How a long request is cut: all of it once, within the bounds, and never into single rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.engine.sizes import LEAST_ROWS, WHOLE_SCORE_BYTES, Sizes, count_score_bytes
from service.engine.slices import SLICE_SCORE_BYTES, Slices

GIB = 2**30
D = 512
LONG = Sizes(1, 8, 4096, 4096)


def find(sizes: Sizes, d_model: int = D, max_score_bytes: int = GIB) -> Slices:
    slices = Slices.find(sizes, d_model, max_score_bytes)
    assert slices is not None
    return slices


@pytest.mark.parametrize("sizes", [Sizes(1, 8, 2048, 2048), Sizes(4, 8, 1024, 1024)])
def test_up_to_the_threshold_a_request_is_computed_at_once(sizes: Sizes) -> None:
    assert count_score_bytes(sizes) == WHOLE_SCORE_BYTES
    assert Slices.find(sizes, D, GIB) is None
    assert len(find(sizes._replace(key_length=sizes.key_length + 1))) > 1
    assert len(find(sizes, max_score_bytes=WHOLE_SCORE_BYTES - 1)) > 1


def test_items_are_told_apart_before_rows_are() -> None:
    slices = find(Sizes(7, 8, 1024, 1024))
    assert [(part.items.start, part.items.stop) for part in slices] == [(0, 3), (3, 7)]
    assert all(part.rows == slice(0, 1024) for part in slices)


def test_an_item_that_is_too_long_is_cut_into_rows() -> None:
    slices = find(LONG._replace(batch_size=2))
    assert len(slices) == 2 * 16
    assert slices[0] == (slice(0, 1), slice(0, 256))
    assert slices[16] == (slice(1, 2), slice(0, 256))
    assert count_score_bytes(LONG._replace(query_length=256)) == SLICE_SCORE_BYTES


@pytest.mark.parametrize(("d_model", "rows"), [(64, 256), (512, 256), (768, 384), (8192, 1024)])
def test_wider_tokens_are_projected_less_often(d_model: int, rows: int) -> None:
    """Up to as many scores as are computed at once."""
    assert find(LONG, d_model)[0].rows == slice(0, 372 if rows == 384 else rows)


@given(
    sizes=st.builds(Sizes, *(st.integers(1, most) for most in (5, 4, 60, 70))),
    d_model=st.sampled_from([1, 8, 300]),
    max_score_bytes=st.integers(1, 5000),
)
def test_every_row_is_in_one_slice_and_no_slice_holds_too_much(
    sizes: Sizes, d_model: int, max_score_bytes: int
) -> None:
    slices = Slices.find(sizes, d_model, max_score_bytes)
    if slices is None:
        assert count_score_bytes(sizes) <= max_score_bytes
        return
    seen = np.zeros((sizes.batch_size, sizes.query_length), int)
    least_bytes = count_score_bytes(sizes._replace(batch_size=1, query_length=LEAST_ROWS))
    for part in slices:
        seen[part] += 1
        items, rows = seen[part].shape
        held = sizes._replace(batch_size=items, query_length=rows)
        assert count_score_bytes(held) <= max(max_score_bytes, least_bytes)
        assert rows > 1 or sizes.query_length == 1
    assert (seen == 1).all()
    assert len(slices) == len(list(slices)) == len(list(reversed(slices)))
