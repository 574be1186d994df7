"""Which graph answers a request, and what goes into it."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from model.contract import (
    DECOMPOSED,
    FUSED,
    FUSED_BIAS,
    FUSED_CAUSAL,
    FUSED_WEIGHTS,
    Causal,
    GraphSpec,
)
from service.engine.feeds import (
    PROVIDER_GRAPHS,
    build_feeds,
    build_feeds_apart,
    choose_graph,
    find_key_lengths,
)
from service.engine.lane import go_on
from service.engine.masks import Hiding
from service.engine.session import Provider
from service.engine.slices import Slices
from service.inference import WeightsForm
from tests.service.engine.stand_ins import PREFIXES, B, D, H, L, S, prepare


@pytest.mark.parametrize(
    ("provider", "weights", "graph"),
    [
        ("cpu", "none", FUSED_BIAS),
        ("cpu", "per_head", FUSED_WEIGHTS),
        ("cpu", "mean", FUSED_WEIGHTS),
        ("cuda", "none", FUSED),
        ("cuda", "per_head", DECOMPOSED),
        ("cuda", "mean", DECOMPOSED),
    ],
)
def test_the_graph_depends_on_the_provider_and_the_weights(
    provider: Provider, weights: WeightsForm, graph: GraphSpec
) -> None:
    prepared = prepare(weights=weights)
    assert choose_graph(provider, prepared, find_key_lengths(prepared)) is graph
    assert graph in PROVIDER_GRAPHS[provider]


HIDINGS = {
    "a mask": Hiding(mask=np.ones((1, 1, L, S), bool)),
    "a bias": Hiding(bias=np.zeros((1, 1, L, S), np.float32)),
    "keys that are no prefix": Hiding(key_mask=~PREFIXES | np.eye(B, S, dtype=bool)),
    "an item without keys": Hiding(key_mask=PREFIXES & (np.arange(B) != 2)[:, None]),
    "a prefix beside a mask": Hiding(mask=np.ones((1, 1, L, S), bool), key_mask=PREFIXES),
    "a mask for each head": Hiding(mask=np.ones((1, H, 1, S), bool)),
    "a mask that is no prefix": Hiding(mask=(~PREFIXES | np.eye(B, S, dtype=bool))[:, None, None]),
}


@pytest.mark.parametrize("hiding", HIDINGS.values(), ids=HIDINGS)
def test_on_cuda_key_lengths_answer_nothing_else_that_hides(hiding: Hiding) -> None:
    assert find_key_lengths(prepare(hiding)) is None
    assert choose_graph("cuda", prepare(hiding), None) is FUSED_BIAS
    assert FUSED_BIAS in PROVIDER_GRAPHS["cuda"]


def test_a_prefix_of_real_keys_becomes_key_lengths() -> None:
    prepared = prepare(Hiding(key_mask=PREFIXES))
    lengths = find_key_lengths(prepared)
    assert lengths is not None
    assert lengths.dtype == np.int64
    assert lengths.tolist() == [7, 1, 4, 6]
    assert choose_graph("cuda", prepared, lengths) is FUSED
    assert choose_graph("cpu", prepared, lengths) is FUSED_BIAS


def test_any_byte_but_nought_is_a_real_key() -> None:
    odd = np.where(PREFIXES, np.uint8(2), np.uint8(0)).view(bool)
    lengths = find_key_lengths(prepare(Hiding(key_mask=odd)))
    assert lengths is not None
    assert lengths.tolist() == [7, 1, 4, 6]


LONGER = np.arange(S) < np.array([7, 5, 6, 5])[:, None]
CAUSAL: list[tuple[str, Causal, int, NDArray[np.bool_] | None, GraphSpec]] = [
    ("aligned at the first key", "top_left", L, None, FUSED_CAUSAL),
    ("aligned at the last key", "bottom_right", L, None, FUSED_BIAS),
    ("square", "bottom_right", S, None, FUSED_CAUSAL),
    ("more queries than keys", "top_left", S + 2, None, FUSED_BIAS),
    ("padding behind all queries", "top_left", L, LONGER, FUSED_CAUSAL),
    ("padding before a query", "top_left", L, PREFIXES, FUSED_BIAS),
]


@pytest.mark.parametrize(
    ("causal", "length", "key_mask", "graph"),
    [case[1:] for case in CAUSAL],
    ids=[c[0] for c in CAUSAL],
)
def test_on_cuda_a_graph_is_causal_by_itself_where_nothing_else_hides(
    causal: Causal, length: int, key_mask: NDArray[np.bool_] | None, graph: GraphSpec
) -> None:
    prepared = prepare(Hiding(key_mask=key_mask, causal=causal))
    prepared = replace(prepared, query=np.ones((B, length, D), np.float32))
    assert choose_graph("cuda", prepared, find_key_lengths(prepared)) is graph
    assert choose_graph("cpu", prepared, None) is FUSED_BIAS
    assert graph in PROVIDER_GRAPHS["cuda"]


def test_the_causal_graph_gets_no_hiding_and_no_token_that_nobody_sees() -> None:
    prepared = prepare(Hiding(causal="top_left"))
    feeds = build_feeds(FUSED_CAUSAL, prepared, find_key_lengths(prepared))
    assert tuple(feeds) == FUSED_CAUSAL.inputs
    for name, sent in (("key", prepared.key), ("value", prepared.value)):
        assert feeds[name][:, :L].tolist() == sent[:, :L].tolist()
        assert not feeds[name][:, L:].any()


def test_a_square_causal_request_is_fed_as_it_came() -> None:
    prepared = prepare(Hiding(causal="top_left"))
    square = replace(prepared, query=prepared.key)
    feeds = build_feeds(FUSED_CAUSAL, square, find_key_lengths(square))
    assert feeds["query"] is feeds["key"] is prepared.key


def test_a_mask_that_is_the_same_for_all_heads_and_queries_is_a_key_mask() -> None:
    lengths = find_key_lengths(prepare(Hiding(mask=PREFIXES[:, None, None])))
    assert lengths is not None
    assert lengths.tolist() == [7, 1, 4, 6]
    shared = np.arange(S)[None, None, None] < 5
    both = find_key_lengths(prepare(Hiding(mask=shared, key_mask=PREFIXES)))
    assert both is not None
    assert both.tolist() == [5, 1, 4, 5]


def test_without_hiding_all_keys_count() -> None:
    lengths = find_key_lengths(prepare())
    assert lengths is not None
    assert lengths.tolist() == [S] * B


def test_the_graph_of_key_lengths_gets_them_and_no_bias() -> None:
    prepared = prepare(Hiding(key_mask=PREFIXES))
    feeds = build_feeds(FUSED, prepared, find_key_lengths(prepared))
    assert tuple(feeds) == FUSED.inputs
    assert feeds["key_lengths"].tolist() == [7, 1, 4, 6]
    # What nobody sees is 0: its weight is, but 0 times what a client leaves there may be NaN.
    assert not feeds["key"][1, 1:].any()
    assert not feeds["value"][1, 1:].any()


def test_every_other_graph_gets_a_bias() -> None:
    bias = np.ones((1, H, 1, S), np.float32)
    feeds = build_feeds(FUSED_BIAS, prepare(Hiding(bias=bias)), None)
    assert tuple(feeds) == FUSED_BIAS.inputs
    assert feeds["bias"].tolist() == np.broadcast_to(bias, (1, H, L, S)).tolist()


@pytest.mark.parametrize("graph", [FUSED, FUSED_BIAS])
def test_slices_are_fed_their_part_of_everything(graph: GraphSpec) -> None:
    prepared = prepare(Hiding(key_mask=PREFIXES))
    key_lengths = find_key_lengths(prepared)
    whole, slices = build_feeds(graph, prepared, key_lengths), Slices(B, L, 2, 2)
    found = list(build_feeds_apart(graph, prepared, slices, key_lengths, go_on))
    assert [part for part, _ in found] == list(slices)
    for part, feeds in found:
        assert tuple(feeds) == graph.inputs
        np.testing.assert_array_equal(feeds["query"], whole["query"][part])
        for name in ("key", "value"):
            np.testing.assert_array_equal(feeds[name], whole[name][part.items])
        last = graph.inputs[-1]
        wanted = whole[last][part.items]
        np.testing.assert_array_equal(
            feeds[last], wanted[:, :, part.rows] if graph is FUSED_BIAS else wanted
        )


def test_tokens_that_are_key_and_value_are_cleared_once() -> None:
    prepared = prepare(Hiding(key_mask=PREFIXES))
    alone = replace(prepared, value=prepared.key)
    feeds = build_feeds(FUSED_BIAS, alone, None)
    assert feeds["key"] is feeds["value"]
    assert feeds["key"] is not prepared.key
