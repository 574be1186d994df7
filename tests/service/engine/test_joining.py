"""Joined requests: each answer has the bits that it has alone, and sizes and senses stay apart."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from model.contract import Causal
from model.reference import attend
from model.weights import Weights
from service.engine.joining import join, join_key, split
from service.engine.lane import go_on
from service.engine.masks import Hiding
from service.engine.model import Model
from service.engine.signature import Prepared
from service.inference import NO_WEIGHTS, Inference, WantedWeights

L, S, D, H = 4, 5, 6, 3
WEIGHTS = (
    NO_WEIGHTS,
    WantedWeights("per_head"),
    WantedWeights("per_head", heads=(2, 0)),
    WantedWeights("mean"),
    WantedWeights("mean", heads=(2, 0)),
    WantedWeights("top_k", top_k=3),
    WantedWeights("top_k", heads=(1,), top_k=99),
)
HIDE = (-1e30, -np.inf, float(np.finfo("f4").min))
ELEMENTS = st.sampled_from([0.0, 1.5, -2.25, 50.0, -1e4, *HIDE])
Shape = tuple[int, int]


def prepare(rows: int = 2, **changes: Any) -> Prepared:
    """A request of `rows` items, with query, key and value all different."""
    generator = np.random.default_rng(rows)
    query, key, value = (
        generator.standard_normal((rows, length, D)).astype(np.float32) for length in (L, S, S)
    )
    return replace(Prepared(query, key, value, Hiding(), NO_WEIGHTS), **changes)


@st.composite
def alike(draw: st.DrawFn) -> tuple[list[dict[str, Any]], Causal, WantedWeights]:
    """Tensors of a few requests that may be joined, and what they ask for."""
    heads, length = draw(st.sampled_from([1, H])), draw(st.sampled_from([1, L]))
    absent = draw(st.sampled_from(["nothing", "value", "key and value"]))
    present = draw(st.sets(st.sampled_from(["mask", "key_mask", "bias"])))
    keys = L if absent == "key and value" else S
    requests = []
    for _ in range(draw(st.integers(2, 4))):
        rows = draw(st.integers(1, 3))
        batch = draw(st.sampled_from([1, rows]))
        shape = (batch, heads, length, keys)
        scale = draw(st.sampled_from([1.0, 0.01, 30.0, 1e4]))
        generator = np.random.default_rng(draw(st.integers(0, 99)))
        tensors: dict[str, Any] = {
            name: (generator.standard_normal((rows, size, D)) * scale).astype(np.float32)
            for name, size in (("query", L), ("key", keys), ("value", keys))
            if name not in absent
        }
        if "mask" in present:
            tensors["mask"] = draw(arrays.arrays(bool, shape))
        if "key_mask" in present:
            tensors["key_mask"] = draw(arrays.arrays(bool, (rows, keys)))
        if "bias" in present:
            tensors["bias"] = draw(arrays.arrays(np.float32, shape, elements=ELEMENTS))
        requests.append(tensors)
    causal: Causal = draw(st.sampled_from([False, "top_left", "bottom_right"]))
    return requests, causal, draw(st.sampled_from(WEIGHTS))


@given(asked=alike())
@settings(max_examples=300)
def test_each_answer_has_the_bits_that_it_has_alone(demo: Model, asked: Any) -> None:
    requests, causal, weights = asked
    prepared = [demo.check(Inference(tensors, causal, weights)) for tensors in requests]
    assert len({demo.lane.join_key(each) for each in prepared}) == 1
    together = demo.lane.run(prepared, go_on)
    for each, found in zip(prepared, together, strict=True):
        alone = demo.run(each)
        assert found.graph == alone.graph
        assert found.tensors.keys() == alone.tensors.keys()
        for name, array in alone.tensors.items():
            assert found.tensors[name].shape == array.shape
            assert found.tensors[name].tobytes() == array.tobytes(), name


@given(asked=alike(), wild=st.sampled_from([np.nan, np.inf, -np.inf]), data=st.data())
def test_what_is_not_finite_never_reaches_another_request(
    demo: Model, asked: Any, wild: float, data: st.DataObject
) -> None:
    requests, causal, weights = asked
    calm = [demo.check(Inference(tensors, causal, weights)) for tensors in requests]
    victim = data.draw(st.integers(0, len(requests) - 1))
    name = data.draw(st.sampled_from([n for n in ("query", "key") if n in requests[victim]]))
    broken = dict(requests[victim], **{name: np.full_like(requests[victim][name], wild)})
    mixed = list(calm)
    mixed[victim] = demo.check(Inference(broken, causal, weights))
    wanted, found = demo.lane.run(calm, go_on), demo.lane.run(mixed, go_on)
    for item in set(range(len(requests))) - {victim}:
        for tensor, array in wanted[item].tensors.items():
            assert found[item].tensors[tensor].tobytes() == array.tobytes()


def test_what_one_request_hides_and_blind_rows_touch_no_other(
    demo: Model, weights: Weights
) -> None:
    """A key that nobody sees counts as 0 in its request alone, whatever stands beside it."""
    hides, shows, is_blind = (np.ones((1, 1, L, S), bool) for _ in range(3))
    hides[..., 2] = False
    is_blind[:, :, 1] = False
    requests = [prepare(rows) for rows in (1, 2, 3)]
    requests[0].key[:, 2] = np.nan
    requests[0].value[:, 2] = np.inf
    masks = (hides, shows, is_blind)
    joined = demo.lane.run(
        [replace(r, hiding=Hiding(mask=m)) for r, m in zip(requests, masks, strict=True)], go_on
    )
    requests[0].key[:, 2] = requests[0].value[:, 2] = 0
    for request, mask, found in zip(requests, masks, joined, strict=True):
        wanted, _ = attend(weights, request.query, request.key, request.value, mask=mask)
        np.testing.assert_allclose(found.tensors["output"], wanted, atol=1e-6)


KINDS: dict[str, Prepared] = {
    "plain": prepare(),
    "the query as key": prepare(key=(q := prepare().query), query=q, value=q.copy()),
    "the key as value": prepare(key=(k := prepare().key), value=k),
    "a shorter query": prepare(query=prepare().query[:, 1:]),
    "fewer keys": prepare(key=prepare().key[:, 1:], value=prepare().value[:, 1:]),
    "wider keys": prepare(key=np.zeros((2, S, D + 1), np.float32)),
    "wider values": prepare(value=np.zeros((2, S, D + 2), np.float32)),
    "weights": prepare(weights=WantedWeights("per_head")),
    "those of one head": prepare(weights=WantedWeights("per_head", heads=(1,))),
    "those of two heads": prepare(weights=WantedWeights("per_head", heads=(0, 1))),
    "those of the same heads the other way": prepare(
        weights=WantedWeights("per_head", heads=(1, 0))
    ),
    "their mean": prepare(weights=WantedWeights("mean")),
    "the mean of some": prepare(weights=WantedWeights("mean", heads=(0, 1))),
    "the largest": prepare(weights=WantedWeights("top_k", top_k=2)),
    "more of the largest": prepare(weights=WantedWeights("top_k", top_k=3)),
    "the largest of one head": prepare(weights=WantedWeights("top_k", heads=(1,), top_k=2)),
    "causal": prepare(hiding=Hiding(causal="top_left")),
    "causal at the end": prepare(hiding=Hiding(causal="bottom_right")),
    "a key mask": prepare(hiding=Hiding(key_mask=np.ones((2, S), bool))),
    "a mask": prepare(hiding=Hiding(mask=np.ones((1, 1, L, S), bool))),
    "a mask of one row": prepare(hiding=Hiding(mask=np.ones((1, 1, 1, S), bool))),
    "a mask for each head": prepare(hiding=Hiding(mask=np.ones((1, H, L, S), bool))),
    "a bias": prepare(hiding=Hiding(bias=np.zeros((1, 1, L, S), np.float32))),
    "a bias of one row": prepare(hiding=Hiding(bias=np.zeros((1, 1, 1, S), np.float32))),
}


def test_requests_of_unlike_kinds_have_unlike_keys() -> None:
    assert len({join_key(prepared) for prepared in KINDS.values()}) == len(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_requests_of_one_kind_have_equal_keys_whatever_their_rows(kind: str) -> None:
    one = KINDS[kind]
    parts = (one.query, one.key, one.value)
    known = {id(part): part[:1] for part in parts}
    query, key, value = (known[id(part)] for part in parts)
    hiding = one.hiding
    if hiding.key_mask is not None:
        hiding = replace(hiding, key_mask=hiding.key_mask[:1])
    assert join_key(Prepared(query, key, value, hiding, one.weights)) == join_key(one)


def test_a_request_alone_is_not_copied() -> None:
    prepared = prepare()
    assert join([prepared]) is prepared
    tensors = {"output": np.zeros((2, L, D), np.float32)}
    assert split(tensors, [prepared])[0] is tensors


def test_what_stands_in_for_another_tensor_is_joined_once() -> None:
    requests = [
        replace(each, key=each.query, value=each.query) for each in (prepare(1), prepare(3))
    ]
    joined = join(requests)
    assert joined.rows == 4
    assert joined.key is joined.query
    assert joined.value is joined.key


def test_a_mask_for_all_items_becomes_one_for_each() -> None:
    mask, bias = np.zeros((1, 1, 1, S), bool), np.ones((1, H, L, S), np.float32)
    shared = Hiding(mask=mask, bias=bias)
    own = Hiding(mask=np.ones((3, 1, 1, S), bool), bias=np.zeros((3, H, L, S), np.float32))
    joined = join([prepare(2, hiding=shared), prepare(3, hiding=own)])
    assert joined.hiding.mask is not None
    assert joined.hiding.bias is not None
    assert joined.hiding.mask[:, 0, 0, 0].tolist() == [False, False, True, True, True]
    assert joined.hiding.bias[:, 0, 0, 0].tolist() == [1, 1, 0, 0, 0]


def test_an_answer_is_taken_apart_without_a_copy() -> None:
    numbers = np.arange(6 * L * D, dtype=np.float32).reshape(6, L, D)
    parts = split({"output": numbers}, [prepare(2), prepare(1), prepare(3)])
    assert [part["output"][:, 0, 0].tolist() for part in parts] == [
        [0, L * D], [2 * L * D], [3 * L * D, 4 * L * D, 5 * L * D],
    ]  # fmt: skip
    assert all(np.shares_memory(part["output"], numbers) for part in parts)
