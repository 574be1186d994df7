"""Requests of unlike lengths in one run: what is added, and that no answer shows it."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.contract import BIAS, FUSED, FUSED_BIAS, FUSED_CAUSAL, KEY, KEY_LENGTHS, QUERY, VALUE
from service.engine.masks import Hiding
from service.engine.padding import cut_apart, find_step, join_feeds, pad_key
from service.engine.signature import Prepared
from service.inference import NO_WEIGHTS, WantedWeights, WeightsForm

D, H = 6, 3


def draw(*shape: int) -> Any:
    return np.random.default_rng(shape).standard_normal(shape, np.float32)


def prepare(rows: int, length: int, keys: int, hiding: Hiding | None = None) -> Prepared:
    tokens = (draw(rows, length, D), draw(rows, keys, D), draw(rows, keys, D) + 1)
    return Prepared(*tokens, hiding or Hiding(), NO_WEIGHTS)


def feed(rows: int, length: int, keys: int, **more: Any) -> dict[str, Any]:
    prepared = prepare(rows, length, keys)
    return {QUERY: prepared.query, KEY: prepared.key, VALUE: prepared.value, **more}


@given(st.integers(1, 2**20))
def test_lengths_that_share_a_run_are_near(length: int) -> None:
    step = find_step(length)
    assert length <= step < length + max(64, length / 4 + 1)
    assert step % 8 == 0
    assert find_step(step) == step


@given(st.integers(1, 2**20), st.integers(0, 300))
def test_a_longer_sequence_shares_no_shorter_run(length: int, more: int) -> None:
    assert find_step(length) <= find_step(length + more)


def test_unlike_lengths_share_a_run_and_unlike_parameters_never() -> None:
    key = pad_key(FUSED, prepare(2, 5, 7))
    assert pad_key(FUSED, prepare(3, 60, 11)) == key
    assert pad_key(FUSED, prepare(2, 5, 65)) != key
    assert pad_key(FUSED, prepare(2, 65, 7)) != key
    assert pad_key(FUSED_BIAS, prepare(2, 5, 7)) != key
    causal = pad_key(FUSED_BIAS, prepare(2, 5, 7, Hiding(causal="top_left")))
    assert pad_key(FUSED_BIAS, prepare(2, 5, 7, Hiding(causal="bottom_right"))) != causal
    asked = prepare(2, 5, 7)
    wishes: list[tuple[WeightsForm, Any]] = [
        ("per_head", None),
        ("mean", None),
        ("per_head", (1,)),
        ("top_k", None),
    ]
    keys = {
        pad_key(
            FUSED_BIAS,
            Prepared(asked.query, asked.key, asked.value, Hiding(), WantedWeights(form, heads)),
        )
        for form, heads in wishes
    }
    assert len(keys) == len(wishes)


def test_a_bias_for_each_head_shares_no_run_with_one_for_all() -> None:
    one, each = (Hiding(bias=draw(1, heads, 5, 7)) for heads in (1, H))
    assert pad_key(FUSED_BIAS, prepare(2, 5, 7, one)) != pad_key(FUSED_BIAS, prepare(2, 5, 7, each))


def test_tokens_lie_below_each_other_with_zeros_behind() -> None:
    first, second = feed(2, 5, 9), feed(1, 3, 4)
    joined = join_feeds([first, second])
    assert {name: array.shape for name, array in joined.items()} == {
        QUERY: (3, 5, D), KEY: (3, 16, D), VALUE: (3, 16, D),
    }  # fmt: skip
    for name in (QUERY, KEY, VALUE):
        for items, alone in ((slice(0, 2), first[name]), (slice(2, 3), second[name])):
            length = alone.shape[1]
            assert joined[name][items, :length].tolist() == alone.tolist()
            assert not joined[name][items, length:].any()


def test_key_lengths_stay_those_of_each_request() -> None:
    parts = [
        feed(2, 5, 9, **{KEY_LENGTHS: np.array([9, 4])}),
        feed(1, 3, 4, **{KEY_LENGTHS: np.array([2])}),
    ]
    assert join_feeds(parts)[KEY_LENGTHS].tolist() == [9, 4, 2]


def test_keys_that_were_added_are_hidden_by_the_bias() -> None:
    parts = [feed(2, 5, 9, **{BIAS: draw(1, 1, 5, 9)}), feed(1, 3, 4, **{BIAS: draw(1, H, 3, 4)})]
    bias = join_feeds(parts)[BIAS]
    assert bias.shape == (3, H, 5, 16)
    assert bias[:2, :, :, :9].tolist() == np.broadcast_to(parts[0][BIAS], (2, H, 5, 9)).tolist()
    assert bias[2:, :, :3, :4].tolist() == parts[1][BIAS].tolist()
    assert (bias[:2, :, :, 9:] == -np.inf).all()
    assert (bias[2:, :, :3, 4:] == -np.inf).all()
    assert not bias[2:, :, 3:].any(), "a row that sees nothing would divide by zero"


def test_a_bias_that_all_items_share_is_not_spread() -> None:
    bias = join_feeds([feed(4, 5, 9, **{BIAS: draw(1, 1, 5, 9)})])[BIAS]
    assert bias.shape == (1, 1, 5, 16)


def test_what_fits_is_not_copied() -> None:
    alone = feed(2, 5, 8, **{BIAS: draw(1, 1, 5, 8)})
    joined = join_feeds([alone])
    assert all(joined[name] is alone[name] for name in alone)


def test_sequences_that_attend_to_themselves_stay_square_and_one() -> None:
    tokens = [draw(2, 5, D), draw(1, 11, D)]
    joined = join_feeds([dict.fromkeys((QUERY, KEY, VALUE), each) for each in tokens])
    assert joined[QUERY] is joined[KEY] is joined[VALUE]
    assert joined[QUERY].shape == (3, 16, D)
    mixed = join_feeds([dict.fromkeys((QUERY, KEY, VALUE), tokens[0]), feed(1, 5, 5)])
    assert (mixed[QUERY].shape, mixed[KEY].shape) == ((3, 8, D), (3, 8, D))
    assert mixed[VALUE] is not mixed[KEY] is not mixed[QUERY]


def test_a_causal_run_of_square_requests_is_square() -> None:
    joined = join_feeds([feed(1, 13, 13), feed(2, 10, 10)])
    assert tuple(joined) == FUSED_CAUSAL.inputs
    assert joined[QUERY].shape[1] == joined[KEY].shape[1] == 16


@pytest.mark.parametrize("name", ["output", "attention_weights"])
def test_an_answer_is_cut_apart_without_what_was_added(name: str) -> None:
    requests = [prepare(2, 5, 9), prepare(1, 3, 4)]
    whole = draw(3, 8, D) if name == "output" else draw(3, H, 8, 16)
    first, second = cut_apart({name: whole}, requests)
    if name == "output":
        wanted = whole[:2, :5], whole[2:, :3]
    else:
        wanted = whole[:2, :, :5, :9], whole[2:, :, :3, :4]
    for part, right in zip((first, second), wanted, strict=True):
        assert part[name].tolist() == right.tolist()
        assert part[name].flags.c_contiguous, "its bytes are sent as they lie"
