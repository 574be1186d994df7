"""The one bias that hiding becomes, held against the reference in float64."""

import math
from typing import Any, Final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from model.contract import HIDING_BIAS, NO_KEY_SCORE, AttentionSpec, Causal
from model.reference import attend
from model.weights import Weights
from service.engine.lane import go_on
from service.engine.masks import (
    Hiding,
    build_bias,
    clear_tokens,
    find_unseen,
    find_unseen_apart,
    hide,
)
from service.engine.masks import find_visible as find_visible_at_once
from service.engine.slices import Slices

B, H, L, S, D = 4, 3, 5, 7, 6
LOWEST: Final = np.finfo(np.float32).min
SHAPES: Final = [(b, h, q, S) for b in (1, B) for h in (1, H) for q in (1, L)]
ADDED: Final = st.sampled_from(
    [0.0, 1.5, -2.0, -1e9, -1e29, -1e30, float(LOWEST), -math.inf, math.inf, math.nan]
)

HIDINGS = st.builds(
    Hiding,
    mask=st.none() | st.sampled_from(SHAPES).flatmap(lambda shape: arrays.arrays(bool, shape)),
    key_mask=st.none() | arrays.arrays(bool, (B, S)),
    bias=st.none()
    | st.sampled_from(SHAPES).flatmap(
        lambda shape: arrays.arrays(np.float32, shape, elements=ADDED)
    ),
    causal=st.sampled_from([False, "top_left", "bottom_right"]),
)


def identity() -> Weights:
    """A layer that passes its tokens on, so that a test chooses the scores."""
    eye, zero = np.eye(D, dtype=np.float32), np.zeros(D, np.float32)
    return Weights(AttentionSpec(D, H), eye, zero, eye, zero, eye, zero, eye, zero)


def draw_tokens(scale: float) -> tuple[Any, Any]:
    generator = np.random.default_rng(4)
    query = generator.standard_normal((B, L, D)) * scale
    return query, generator.standard_normal((B, S, D)) * scale


def compute_scores(query: Any, key: Any) -> Any:
    q, k = (t.reshape(B, -1, H, D // H).swapaxes(1, 2) for t in (query, key))
    return q @ k.swapaxes(-1, -2) / math.sqrt(D / H)


def softmax(scores: Any) -> Any:
    with np.errstate(invalid="ignore"):  # +inf makes its row NaN, as arithmetic does
        exponentials = np.exp(scores - scores.max(axis=-1, keepdims=True))
        return exponentials / exponentials.sum(axis=-1, keepdims=True)


def find_visible(hiding: Hiding) -> Any:
    """What the contract says, element by element."""
    visible = np.ones((B, H, L, S), bool)
    shift = S - L if hiding.causal == "bottom_right" else 0
    for b, h, i, j in np.ndindex(B, H, L, S):
        if hiding.mask is not None:
            visible[b, h, i, j] &= np.broadcast_to(hiding.mask, visible.shape)[b, h, i, j]
        if hiding.key_mask is not None:
            visible[b, h, i, j] &= hiding.key_mask[b, j]
        if hiding.bias is not None:
            visible[b, h, i, j] &= not (
                np.broadcast_to(hiding.bias, visible.shape)[b, h, i, j] <= np.float32(-1e30)
            )
        if hiding.causal:
            visible[b, h, i, j] &= j <= i + shift
    return visible


@given(HIDINGS, st.sampled_from([1.0, 30.0, 31623.0]))
def test_a_softmax_with_the_bias_is_the_reference(hiding: Hiding, scale: float) -> None:
    """The largest scale gives scores of 1e9 and more, which drown the formula's -1e9."""
    query, key = draw_tokens(scale)
    _, wanted = attend(
        identity(), query, key,
        mask=hiding.mask, key_mask=hiding.key_mask, bias=hiding.bias, causal=hiding.causal,
    )  # fmt: skip
    bias = build_bias(hiding, L, S)
    found = softmax(compute_scores(query, key) + bias.astype(np.float64))
    np.testing.assert_allclose(found, wanted, atol=1e-12)


@given(HIDINGS, st.sampled_from([1.0, 31623.0]))
def test_hidden_keys_weigh_nothing_and_rows_without_keys_are_uniform_in_float32(
    hiding: Hiding, scale: float
) -> None:
    scores = compute_scores(*draw_tokens(scale)).astype(np.float32)
    found = softmax(scores + build_bias(hiding, L, S))
    visible = find_visible(hiding)
    sees_any = visible.any(axis=-1, keepdims=True)
    broken = np.isnan(found).any(axis=-1, keepdims=True)
    assert not found[~visible & sees_any & ~broken].any()
    assert (found[np.broadcast_to(~sees_any, found.shape)] == np.float32(1) / np.float32(S)).all()


@given(HIDINGS)
def test_only_a_row_that_sees_nan_or_infinity_is_not_finite(hiding: Hiding) -> None:
    scores = compute_scores(*draw_tokens(1.0)).astype(np.float32)
    found = softmax(scores + build_bias(hiding, L, S))
    wild = np.zeros((B, H, L, S), bool)
    if hiding.bias is not None:
        wild |= np.isnan(hiding.bias) | np.isposinf(hiding.bias)
    wild_rows = (wild & find_visible(hiding)).any(axis=-1)
    np.testing.assert_array_equal(np.isnan(found).any(axis=-1), wild_rows)


@given(HIDINGS)
def test_no_number_is_one_that_onnxruntime_reads_in_its_own_way(hiding: Hiding) -> None:
    """float32's lowest number makes onnxruntime's Attention answer zeros."""
    assert not (build_bias(hiding, L, S) == LOWEST).any()


@given(
    st.sampled_from(SHAPES).flatmap(lambda shape: arrays.arrays(bool, shape)),
    st.sampled_from(SHAPES).flatmap(lambda shape: arrays.arrays(np.int32, shape)),
)
def test_every_bit_of_a_bias_is_kept_where_a_key_is_visible(visible: Any, bits: Any) -> None:
    """Of NaN and of -0 too: `where` is the oracle."""
    bias = bits.view(np.float32)
    wanted = np.where(visible, bits, np.float32(-np.inf).view(np.int32))
    assert hide(visible, bias).tobytes() == wanted.tobytes()
    reversed_bias = np.ascontiguousarray(bias[..., ::-1])[..., ::-1]
    assert hide(visible, reversed_bias).tobytes() == wanted.tobytes()
    plain = np.where(visible, np.float32(0), np.float32(-np.inf))
    assert hide(visible).tobytes() == plain.tobytes()


ODD = arrays.arrays(np.uint8, (1, H, L, S), elements=st.sampled_from([0, 1, 2, 128, 255]))


@given(ODD, st.booleans())
def test_any_byte_but_nought_is_true(odd: Any, has_keys: bool) -> None:
    keys = np.resize(odd, (B, S)) if has_keys else None
    hiding = Hiding(odd.view(bool), None if keys is None else keys.view(bool))
    plain = Hiding(odd != 0, None if keys is None else keys != 0)
    assert build_bias(hiding, L, S).tobytes() == build_bias(plain, L, S).tobytes()
    found, wanted = (find_visible_at_once(each, L, S) for each in (hiding, plain))
    assert found is not None
    assert wanted is not None
    assert found.tobytes() == wanted.tobytes()


@given(HIDINGS)
def test_the_last_two_axes_are_always_full(hiding: Hiding) -> None:
    bias = build_bias(hiding, L, S)
    assert bias.dtype == np.float32
    assert bias.shape[0] in (1, B)
    assert bias.shape[1] in (1, H)
    assert bias.shape[2:] == (L, S)


@given(HIDINGS)
def test_the_request_is_left_as_it_came(hiding: Hiding) -> None:
    parts = (hiding.mask, hiding.key_mask, hiding.bias)
    before = [None if part is None else part.tobytes() for part in parts]
    for part in parts:
        if part is not None:
            part.flags.writeable = False
    build_bias(hiding, L, S)
    assert [None if part is None else part.tobytes() for part in parts] == before


def test_nothing_hidden_adds_nothing_for_all_items_and_heads() -> None:
    assert build_bias(Hiding(), L, S).tobytes() == np.zeros((1, 1, L, S), np.float32).tobytes()


@pytest.mark.parametrize(
    ("causal", "first", "last"),
    [("top_left", [0], [0, 1, 2, 3, 4]), ("bottom_right", [0, 1, 2], [0, 1, 2, 3, 4, 5, 6])],
)
def test_causal_has_two_alignments(causal: Causal, first: list[int], last: list[int]) -> None:
    bias = build_bias(Hiding(causal=causal), L, S)[0, 0]
    assert np.flatnonzero(bias[0] == 0).tolist() == first
    assert np.flatnonzero(bias[-1] == 0).tolist() == last


def test_bottom_right_with_more_queries_than_keys_leaves_rows_without_keys() -> None:
    bias = build_bias(Hiding(causal="bottom_right"), S, L)[0, 0]
    assert (bias[: S - L] == np.float32(NO_KEY_SCORE)).all()
    assert np.flatnonzero(bias[S - L] == 0).tolist() == [0]


def test_scores_up_to_1e22_drown_in_a_row_without_keys_and_cuda_sees_it() -> None:
    row = np.float32(NO_KEY_SCORE) + np.array([-1e22, 0, 3, 1e22], np.float32)
    assert (row == np.float32(NO_KEY_SCORE)).all()
    assert (row > np.float32(HIDING_BIAS)).all()


@pytest.mark.parametrize(
    ("value", "hides"),
    [
        (-1e30, True),
        (LOWEST, True),
        (-math.inf, True),
        (np.nextafter(np.float32(-1e30), np.float32(0)), False),
        (-1e29, False),
        (math.nan, False),
    ],
)
def test_a_bias_at_or_below_the_threshold_hides(value: float, *, hides: bool) -> None:
    given_bias = np.zeros((1, 1, 1, S), np.float32)
    given_bias[..., 3] = value
    found = build_bias(Hiding(bias=given_bias), L, S)
    if hides:
        assert np.isneginf(found[..., 3]).all()
    else:
        np.testing.assert_array_equal(found, np.broadcast_to(given_bias, (1, 1, L, S)))


def test_hiding_adds_up_as_sets_and_not_as_numbers() -> None:
    """Two fills of float32's lowest number would add up to -inf, and a row of them to NaN."""
    mask = np.ones((1, 1, 1, S), bool)
    mask[..., 2] = False
    added = np.where(mask, 0, LOWEST).astype(np.float32)
    found = build_bias(Hiding(mask=mask, bias=added, causal="top_left"), L, S)
    assert set(np.unique(found)) == {-np.inf, 0}


def test_keys_are_unseen_where_all_rows_see_another() -> None:
    visible = np.ones((3, 1, 2, 4), bool)
    visible[0, :, :, 3] = False  # seen by no row of item 0
    visible[1, :, 0, 3] = False  # by one row of item 1
    visible[2, :, :, 3] = False  # by none of item 2, but its row 1 sees nothing at all
    visible[2, :, 1] = False
    unseen = find_unseen(visible)
    assert unseen is not None
    assert unseen.tolist() == [[False, False, False, True], [False] * 4, [False] * 4]
    assert find_unseen(visible[1:]) is None


def test_tokens_that_nobody_sees_are_cleared_and_no_others() -> None:
    tokens = np.full((2, 3, 5), np.nan, np.float32)
    unseen = np.array([[False, True, False], [True, False, False]])
    cleared = clear_tokens(tokens, unseen)
    assert cleared.dtype == np.float32
    assert (np.isnan(cleared).all(axis=-1) == ~unseen).all()
    assert not cleared[unseen].any()
    assert clear_tokens(tokens, None) is tokens


SLICES = st.builds(Slices, st.just(B), st.just(L), st.integers(1, B), st.integers(1, L))


@given(HIDINGS, SLICES)
def test_the_bias_of_a_slice_is_that_part_of_the_whole(hiding: Hiding, slices: Slices) -> None:
    """Causal hiding counts the rows of the request, whichever slice they are in."""
    whole = np.broadcast_to(build_bias(hiding, L, S), (B, H, L, S))
    for part in slices:
        found = build_bias(hiding, L, S, part)
        items, rows = (np.empty((B, L))[part]).shape
        assert found.shape[2:] == (rows, S)
        wanted = whole[part.items, :, part.rows]
        assert np.broadcast_to(found, (items, H, rows, S)).tobytes() == wanted.tobytes()


@given(HIDINGS, SLICES)
def test_keys_that_nobody_sees_are_found_slice_by_slice(hiding: Hiding, slices: Slices) -> None:
    visible = find_visible_at_once(hiding, L, S)
    wanted = None if visible is None else find_unseen(visible)
    found = find_unseen_apart(hiding, S, slices, go_on)
    if wanted is None or found is None:
        assert found is wanted
        return
    assert found.tolist() == np.broadcast_to(wanted, (B, S)).tolist()


def test_keys_that_a_bias_hides_in_one_slice_alone_are_unseen() -> None:
    bias = np.zeros((B, 1, 1, S), np.float32)
    bias[1, ..., 3] = -math.inf
    unseen = find_unseen_apart(Hiding(bias=bias), S, Slices(B, L, 1, L), go_on)
    assert unseen is not None
    assert np.argwhere(unseen).tolist() == [[1, 3]]


def test_the_last_rows_of_causal_attention_end_the_search_for_unseen_keys() -> None:
    asked: list[int] = []
    slices = Slices(B, L, 1, L)
    find_unseen_apart(Hiding(causal="top_left"), L, slices, lambda: asked.append(1))
    assert len(asked) == 1
