"""Faults of batching: answers that depend on neighbours, padding, threads or what is asked for.

The promise of the contract at 1 to 64 tokens, 1 to 16 heads and heads of 4 to 192.
"""

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from model.contract import AttentionSpec, Causal
from model.reference import attend
from service.engine.lane import go_on
from service.engine.model import Model
from service.engine.sizes import LEAST_ROWS, Sizes, count_score_bytes
from service.engine.slices import Slices
from service.inference import Inference, WantedWeights, WeightsForm
from tests.faults.sized_model import draw_weights, open_model, write_model
from tests.integration.demo import Arrays, check_same

EXAMPLES = 30
# Heads and the width of one.
SIZES = [(1, 4), (16, 4), (7, 6), (8, 12), (5, 20), (3, 64), (4, 96), (2, 128), (2, 160), (1, 192)]
BITS_UP_TO = 128
PADDING_TOLERANCE = 1e-6

lengths = st.integers(1, 64) | st.sampled_from([1, 2, 3, 16, 63, 64])
forms = st.sampled_from(["none", "per_head", "mean"])
causals = st.sampled_from([False, "top_left", "bottom_right"])
every_size = pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")


@pytest.fixture(scope="module", name="open_")
def make_opener(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Opens the model of one size with a number of threads; each is made once."""
    folder = tmp_path_factory.mktemp("sized")

    @cache
    def write(spec: AttentionSpec) -> Path:
        return write_model(spec, folder)

    @cache
    def open_(heads: int, d_k: int, threads: int = 1) -> Model:
        spec = AttentionSpec(heads * d_k, heads)
        return open_model(write(spec), spec, threads)

    return open_


def draw_tensors(model: Model, sizes: tuple[int, int, int], seed: int, hiding: str) -> Arrays:
    """Tokens, and a mask or bias for each item."""
    generator = np.random.default_rng(seed)
    batch_size, query_length, key_length = sizes
    tensors: Arrays = {
        name: generator.standard_normal((batch_size, length, model.spec.d_model), np.float32)
        for name, length in (("query", query_length), ("key", key_length), ("value", key_length))
    }
    shape = (batch_size, model.spec.num_heads, query_length, key_length)
    if hiding == "mask":
        tensors["mask"] = generator.random(shape) < 0.5
    if hiding == "key_mask":
        tensors["key_mask"] = generator.random((batch_size, key_length)) < 0.5
    if hiding == "bias":
        tensors["bias"] = generator.standard_normal(shape, np.float32)
    return tensors


hidings = st.sampled_from(["nothing", "mask", "key_mask", "bias"])


def run(
    model: Model, tensors: Arrays, causal: Causal = False, form: WeightsForm = "none"
) -> Arrays:
    return model.run(model.check(Inference(tensors, causal, WantedWeights(form)))).tensors


@every_size
@given(
    sizes=st.tuples(st.integers(2, 5), lengths, lengths),
    seed=st.integers(0, 99),
    hiding=hidings,
    causal=causals,
    form=forms,
    threads=st.sampled_from([1, 2]),
)
@settings(max_examples=EXAMPLES)
def test_an_item_has_the_same_bits_alone_and_among_others(
    open_: Any, size: tuple[int, int], sizes: tuple[int, int, int], seed: int, hiding: str,
    causal: Causal, form: WeightsForm, threads: int,
) -> None:  # fmt: skip
    """SeldonIO/MLServer #1541; triton-inference-server/server #7492, #6937."""
    model = open_(*size, threads)
    tensors = draw_tensors(model, sizes, seed, hiding)
    together = run(model, tensors, causal, form)
    for item in range(sizes[0]):
        alone = run(model, {n: a[item : item + 1] for n, a in tensors.items()}, causal, form)
        check_same(alone, {n: a[item : item + 1] for n, a in together.items()})


@every_size
@given(
    rows=st.lists(st.integers(1, 3), min_size=2, max_size=4),
    shared=st.booleans(),
    tokens=st.tuples(lengths, lengths),
    hiding=hidings,
    causal=causals,
    form=forms,
    threads=st.sampled_from([1, 2]),
)
@settings(max_examples=EXAMPLES)
def test_requests_that_are_joined_have_the_bits_of_each_alone(
    open_: Any, size: tuple[int, int], rows: list[int], shared: bool, tokens: tuple[int, int],
    hiding: str, causal: Causal, form: WeightsForm, threads: int,
) -> None:  # fmt: skip
    """SeldonIO/MLServer #1541; triton-inference-server/server #7492, #6937."""
    model = open_(*size, threads)
    requests = []
    for seed, count in enumerate(rows):
        tensors = draw_tensors(model, (count, *tokens), seed, hiding)
        if shared and hiding in ("mask", "bias"):
            tensors[hiding] = tensors[hiding][:1]  # one for all items of the request
        requests.append(model.check(Inference(tensors, causal, WantedWeights(form))))
    assert len({model.lane.join_key(request) for request in requests}) == 1
    for request, together in zip(requests, model.lane.run(requests, go_on), strict=True):
        check_same(together.tensors, model.run(request).tensors)


@every_size
@given(
    sizes=st.tuples(st.integers(1, 4), lengths, lengths),
    seed=st.integers(0, 99),
    hiding=hidings,
    causal=causals,
)
@settings(max_examples=EXAMPLES)
def test_neither_threads_nor_weights_change_a_bit_and_all_is_that_of_the_formula(
    open_: Any, size: tuple[int, int], sizes: tuple[int, int, int], seed: int, hiding: str,
    causal: Causal,
) -> None:  # fmt: skip
    one, two = open_(*size), open_(*size, 2)
    tensors = draw_tensors(one, sizes, seed, hiding)
    right = run(one, tensors, causal, "per_head")
    check_same(run(two, tensors, causal, "per_head"), right)
    for model in (one, two):
        check_same(run(model, tensors, causal), {"output": right["output"]})
    wanted = attend(draw_weights(one.spec), **tensors, causal=causal)
    for got, formula in zip(right.values(), wanted, strict=True):
        np.testing.assert_allclose(got, formula, rtol=0, atol=1e-5)


@every_size
@given(
    sizes=st.tuples(st.integers(1, 4), lengths, lengths),
    share=st.floats(0, 0.99),
    seed=st.integers(0, 99),
    hiding=hidings,
    causal=causals,
    threads=st.sampled_from([1, 2]),
)
@settings(max_examples=EXAMPLES)
def test_slices_change_no_bit_and_all_is_that_of_the_formula(
    open_: Any, size: tuple[int, int], sizes: tuple[int, int, int], share: float, seed: int,
    hiding: str, causal: Causal, threads: int,
) -> None:  # fmt: skip
    """A long request is computed in slices, as here one of few tokens that may hold few scores."""
    model = open_(*size, threads)
    tensors = draw_tensors(model, sizes, seed, hiding)
    at_once = model.check(Inference(tensors, causal))
    batch_size, query_length, key_length = sizes
    all_sizes = Sizes(batch_size, size[0], query_length, key_length)
    least = all_sizes._replace(batch_size=1, query_length=min(LEAST_ROWS, query_length))
    most_bytes = max(count_score_bytes(least), int(share * count_score_bytes(all_sizes)))
    sliced = replace(at_once, slices=Slices.find(all_sizes, model.spec.d_model, most_bytes))
    found = model.run(sliced).tensors
    check_same(found, model.run(at_once).tensors)
    wanted, _ = attend(draw_weights(model.spec), **tensors, causal=causal)
    np.testing.assert_allclose(found["output"], wanted, rtol=0, atol=1e-5)


@every_size
@given(
    query_length=lengths,
    real=st.integers(1, 63),
    padding=st.integers(1, 33),
    seed=st.integers(0, 99),
    form=forms,
)
@settings(max_examples=EXAMPLES)
def test_padding_that_is_hidden_changes_no_bit_or_next_to_nothing(
    open_: Any, size: tuple[int, int], query_length: int, real: int, padding: int, seed: int,
    form: WeightsForm,
) -> None:  # fmt: skip
    """wenet-e2e/wenet #1993; pytorch/pytorch #41508."""
    model = open_(*size)
    padded = draw_tensors(model, (2, query_length, real + padding), seed, "nothing")
    short = padded | {name: padded[name][:, :real].copy() for name in ("key", "value")}
    padded["key_mask"] = np.broadcast_to(np.arange(real + padding) < real, (2, real + padding))
    found, wanted = run(model, padded, form=form), run(model, short, form=form)
    if form != "none":
        assert not found["attention_weights"][..., real:].any()
        found["attention_weights"] = np.ascontiguousarray(found["attention_weights"][..., :real])
    if query_length > 1 and size[1] <= BITS_UP_TO:
        check_same(found, wanted)
    for name, array in wanted.items():
        np.testing.assert_allclose(found[name], array, rtol=0, atol=PADDING_TOLERANCE)
