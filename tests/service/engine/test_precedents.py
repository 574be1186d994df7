"""A request like one that was accepted is accepted, refused and read as every other."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from model.contract import AttentionSpec
from service.engine.masks import Hiding
from service.engine.precedents import MAX_PRECEDENTS, Precedent, Precedents
from service.engine.signature import Prepared, check_request
from service.engine.sizes import Limits
from service.errors import InvalidRequestError
from service.inference import Inference, WantedWeights

B, L, S, D, H = 4, 5, 7, 6, 3
SPEC = AttentionSpec(D, H)
# Of the last, scores are computed in slices.
LIMITS = [Limits(256, 2**20, 2**30, 2**30), Limits(256, 2**20, 4 * H * L * S, 2**30)]
BIAS = st.sampled_from([0.0, -0.0, 2.5, -1e30, np.inf, -np.inf, np.nan])
WEIGHTS = st.sampled_from(
    [
        WantedWeights(),
        WantedWeights("mean"),
        WantedWeights("per_head", heads=(2, 0)),
        WantedWeights("top_k", top_k=3),
    ]
)
CAUSAL: st.SearchStrategy[Any] = st.sampled_from([None, False, "top_left", "bottom_right"])
FREE = st.tuples(st.just(LIMITS[0]), WEIGHTS)
MASK_TYPES = st.sampled_from([np.bool_, np.uint8, np.int32, np.int64, np.uint64])


def draw_tokens(length: int, seed: int) -> Any:
    return np.random.default_rng(seed).standard_normal((B, length, D)).astype(np.float32)


def draw_mask(data: st.DataObject, shape: tuple[int, ...], dtype: Any) -> Any:
    """Bytes of any value for bool; else mostly 0 and 1, now and then another."""
    if dtype is np.bool_:
        return data.draw(arrays.arrays(np.uint8, shape)).view(np.bool_)
    largest = data.draw(st.sampled_from([1, 1, 2]))
    return data.draw(arrays.arrays(dtype, shape, elements=st.integers(0, largest)))


@st.composite
def shapes(draw: st.DrawFn, keys: int) -> tuple[int, ...]:
    """The shape of a mask or a bias, of any rank."""
    sizes = [draw(st.sampled_from([1, size])) for size in (B, H, L)]
    return draw(st.sampled_from([(*sizes, keys), (sizes[0], sizes[2], keys), (sizes[2], keys)]))


def draw_tensors(data: st.DataObject, names: set[str], types: dict[str, Any]) -> dict[str, Any]:
    """Tensors of the same names, shapes and datatypes each time, with other numbers."""
    keys = S if "key" in names else L
    found = {"query": draw_tokens(L, data.draw(st.integers(0, 9)))}
    if "key" in names:
        found["key"] = draw_tokens(S, 10)
    if "value" in names:
        found["value"] = draw_tokens(keys, 11)
    if "mask" in names:
        found["mask"] = draw_mask(data, *types["mask"])
    if "key_mask" in names:
        found["key_mask"] = draw_mask(data, (B, keys), types["key_mask"])
    if "bias" in names:
        found["bias"] = data.draw(arrays.arrays(np.float32, types["bias"], elements=BIAS))
    return found


def tell(prepared: Prepared) -> list[Any]:
    """All of it, as bytes where it is an array."""
    hiding = prepared.hiding
    found = (
        prepared.query,
        prepared.key,
        prepared.value,
        hiding.mask,
        hiding.key_mask,
        hiding.bias,
    )
    tensors = [each if each is None else (each.shape, each.dtype, each.tobytes()) for each in found]
    rest = hiding.causal, prepared.weights, prepared.slices
    return [*tensors, *rest, prepared.output_bytes, prepared.operations, prepared.size_bytes]


def check(prepare: Any) -> Any:
    """What comes of a request: all of it, or why it is refused."""
    try:
        return tell(prepare())
    except InvalidRequestError as error:
        return str(error)


@given(st.data())
def test_it_decides_as_the_whole_check_does(data: st.DataObject) -> None:
    optional = st.sets(st.sampled_from(["key", "value", "mask", "key_mask", "bias"]))
    names = data.draw(optional)
    keys = S if "key" in names else L
    types = {
        "mask": (data.draw(shapes(keys)), data.draw(MASK_TYPES)),
        "key_mask": data.draw(MASK_TYPES),
        "bias": data.draw(shapes(keys)),
    }
    causal = data.draw(CAUSAL)
    limits, weights = data.draw(st.sampled_from([(LIMITS[1], WantedWeights())]) | FREE)
    first, second = (Inference(draw_tensors(data, names, types), causal, weights) for _ in range(2))
    try:
        precedent = Precedent.take(check_request(SPEC, limits, first))
    except InvalidRequestError:
        return
    found = check(lambda: precedent.prepare(second.tensors))
    assert found == check(lambda: check_request(SPEC, limits, second))


@pytest.mark.parametrize(
    ("name", "shape", "place"),
    [("mask", (B, 1, L, S), (3, 0, 4, 6)), ("mask", (L, S), (4, 6)), ("key_mask", (B, S), (2, 5))],
)
def test_an_odd_integer_is_named_with_the_position_in_what_was_sent(
    name: str, shape: tuple[int, ...], place: tuple[int, ...]
) -> None:
    tensors = {"query": draw_tokens(L, 1), "key": draw_tokens(S, 2)}
    plain = Inference(tensors | {name: np.ones(shape, np.int64)})
    precedent = Precedent.take(check_request(SPEC, LIMITS[0], plain))
    odd = np.ones(shape, np.int64)
    odd[place] = -7
    with pytest.raises(InvalidRequestError) as caught:
        precedent.prepare(tensors | {name: odd})
    assert str(caught.value) == f"input '{name}' holds -7 at {list(place)}, expected 0 or 1"


def make_prepared() -> Prepared:
    query = draw_tokens(L, 3)
    return Prepared(query, query, query, Hiding(), WantedWeights())


def test_what_is_like_is_found_and_nothing_else() -> None:
    precedents, likeness = Precedents(), object()
    assert precedents.find(likeness) is None
    precedents.keep(likeness, make_prepared())
    assert precedents.find(likeness) == Precedent.take(make_prepared())
    assert precedents.find(object()) is None


def test_a_request_of_which_no_likeness_is_known_is_not_kept() -> None:
    precedents = Precedents()
    precedents.keep(None, make_prepared())
    assert precedents.find(None) is None


def test_no_more_are_kept_than_a_number() -> None:
    precedents = Precedents()
    likenesses = [object() for _ in range(3 * MAX_PRECEDENTS + 1)]
    for likeness in likenesses:
        precedents.keep(likeness, make_prepared())
        assert precedents.find(likeness) is not None
    kept = [likeness for likeness in likenesses if precedents.find(likeness)]
    assert 0 < len(kept) <= MAX_PRECEDENTS


def test_numbers_are_not_kept() -> None:
    precedent = Precedent.take(make_prepared())
    other = draw_tokens(L, 4)
    assert precedent.prepare({"query": other}).query is other
