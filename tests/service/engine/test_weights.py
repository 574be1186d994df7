"""What is made of the weights of a run: those of some heads, their mean, the largest."""

import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray

from service.engine.weights import BLOCK_NUMBERS, average_heads, find_top, reduce_weights
from service.inference import NO_WEIGHTS, WantedWeights

B, H, L, S, D = 2, 3, 4, 5, 6
# Few values, so that many are equal; one is the least that float32 has.
LEVELS = st.sampled_from([0.0, 1e-45, 0.125, 0.25, float(np.nextafter(np.float32(0.25), 1)), 1.0])


def draw_weights(*shape: int) -> NDArray[np.float32]:
    """Rows that add up to 1."""
    weights = np.random.default_rng(5).random(shape, np.float32)
    weights /= weights.sum(axis=-1, keepdims=True)
    return weights


def make_tensors() -> dict[str, Any]:
    """The tensors of a graph that answers with weights."""
    return {
        "output": np.ones((B, L, D), np.float32),
        "attention_weights": draw_weights(B, H, L, S),
    }


def rank_stably(weights: NDArray[np.float32], count: int) -> NDArray[np.intp]:
    """The keys of the largest weights, by a sort that leaves equal ones in their order."""
    return np.argsort(-weights, axis=-1, kind="stable")[..., :count]


def test_an_answer_without_weights_is_left_alone() -> None:
    tensors = {"output": np.ones((B, L, D), np.float32)}
    assert reduce_weights(tensors, NO_WEIGHTS) is tensors


def test_the_weights_of_all_heads_are_not_copied() -> None:
    tensors = make_tensors()
    found = reduce_weights(tensors, WantedWeights("per_head"))
    assert found.keys() == {"output", "attention_weights"}
    assert found["attention_weights"] is tensors["attention_weights"]


def test_some_heads_come_in_the_order_asked_for_and_keep_no_others_in_memory() -> None:
    tensors = make_tensors()
    found = reduce_weights(tensors, WantedWeights("per_head", (2, 0)))["attention_weights"]
    assert found.shape == (B, 2, L, S)
    assert found.base is None
    assert found.flags.c_contiguous
    for place, head in enumerate((2, 0)):
        assert (found[:, place] == tensors["attention_weights"][:, head]).all()


@pytest.mark.parametrize("heads", [None, (2, 0), (1,)])
def test_a_mean_is_that_of_the_heads_asked_for(heads: tuple[int, ...] | None) -> None:
    tensors = make_tensors()
    before = tensors["attention_weights"].copy()
    found = reduce_weights(tensors, WantedWeights("mean", heads))["attention_weights"]
    chosen = before if heads is None else before[:, heads]
    np.testing.assert_allclose(found, chosen.astype(np.float64).mean(axis=1), rtol=1e-6)
    assert found.dtype == np.float32
    assert (tensors["attention_weights"] == before).all()


def test_neither_the_order_of_heads_nor_a_size_changes_a_bit_of_their_mean() -> None:
    weights = draw_weights(B, 9, L, S)
    straight = average_heads(weights, (0, 3, 4, 8))
    assert average_heads(weights, (8, 4, 0, 3)).tobytes() == straight.tobytes()
    for key in range(S):
        alone = average_heads(np.ascontiguousarray(weights[:, :, :1, key : key + 1]), None)
        assert alone.tobytes() == average_heads(weights, None)[:, :1, key : key + 1].tobytes()


def test_the_largest_take_the_place_of_all_weights() -> None:
    tensors = make_tensors()
    found = reduce_weights(tensors, WantedWeights("top_k", top_k=2))
    assert list(found) == ["output", "top_k_weights", "top_k_keys"]
    weights, keys = found["top_k_weights"], found["top_k_keys"]
    assert weights.dtype == np.float32
    assert keys.dtype == np.int32
    assert weights.shape == keys.shape == (B, H, L, 2)
    assert (keys == rank_stably(tensors["attention_weights"], 2)).all()
    taken = np.take_along_axis(tensors["attention_weights"], keys, axis=-1)
    assert weights.tobytes() == taken.tobytes()


@pytest.mark.parametrize("count", [S, S + 1, 2**31 - 1])
def test_more_keys_than_there_are_give_all(count: int) -> None:
    weights = draw_weights(B, H, L, S)
    values, keys = find_top(weights, None, count)
    assert values.shape == keys.shape == weights.shape
    assert (np.diff(values, axis=-1) <= 0).all()


@given(
    weights=st.tuples(*(st.integers(1, 6) for _ in range(4))).flatmap(
        lambda shape: arrays.arrays(np.float32, shape, elements=LEVELS)
    ),
    data=st.data(),
)
def test_equal_weights_are_in_the_order_of_their_keys(
    weights: NDArray[np.float32], data: st.DataObject
) -> None:
    numbers = st.lists(st.integers(0, weights.shape[1] - 1), min_size=1, unique=True)
    heads = data.draw(st.none() | numbers.map(tuple))
    count = data.draw(st.integers(1, 7))
    values, keys = find_top(weights, heads, count)
    chosen = weights if heads is None else weights[:, heads]
    wanted = rank_stably(chosen, count)
    assert keys.tolist() == wanted.tolist()
    assert values.tolist() == np.take_along_axis(chosen, wanted, axis=-1).tolist()


def test_a_row_that_is_not_a_number_has_its_first_keys_and_spoils_no_other() -> None:
    weights = draw_weights(B, H, L, S)
    # Two signs and two payloads: which one a processor writes is its own affair.
    bits = np.array([0x7FC00000, 0xFFC00000, 0x7F800001, 0xFFFFFFFF, 0x7FC00000], np.uint32)
    right = find_top(weights, None, 3)
    weights[1, 2, 3] = bits.view(np.float32)
    values, keys = find_top(weights, None, 3)
    assert keys[1, 2, 3].tolist() == [0, 1, 2]
    assert np.isnan(values[1, 2, 3]).all()
    assert np.isnan(values).sum() == 3
    values[1, 2, 3], keys[1, 2, 3] = right[0][1, 2, 3], right[1][1, 2, 3]
    assert (values.tobytes(), keys.tobytes()) == (right[0].tobytes(), right[1].tobytes())


@pytest.mark.parametrize("key_length", [7, BLOCK_NUMBERS // 3, BLOCK_NUMBERS + 1])
def test_rows_of_many_blocks_are_those_of_one(key_length: int) -> None:
    rows = 4 * BLOCK_NUMBERS // key_length + 3
    levels = np.random.default_rng(1).integers(0, 9, (1, 1, rows, key_length))
    weights = levels.astype(np.float32)
    _, keys = find_top(weights, None, 4)
    assert (keys == rank_stably(weights, 4)).all()


def test_the_memory_it_takes_does_not_grow_with_the_weights() -> None:
    weights = np.random.default_rng(2).random((2, 8, 300, 512), np.float32)
    tracemalloc.start()
    try:
        values, keys = find_top(weights, (7, 1, 2), 4)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    rows_bytes = 8 * weights.size // 512
    assert peak_bytes < values.nbytes + keys.nbytes + 2 * rows_bytes + 32 * BLOCK_NUMBERS
    assert peak_bytes < weights.nbytes // 6
