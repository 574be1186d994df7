"""The models that OpenAPI is made from accept and refuse the bodies that the parsers do."""

import copy
from typing import Any

from hypothesis import event, given, settings
from hypothesis import strategies as st

from tests.service.protocol.agreement import B, D, H, L, S, Verdict, compare_v1, compare_v2

OUTPUTS = ["output", "attention_weights", "top_k_weights", "top_k_keys"]
JUNK = st.sampled_from(
    [None, True, 0, 2, -1, 1.0, 0.5, "", "query", "mean", [], {}, [None], [[1]], {"a": None}]
).map(copy.deepcopy)  # fmt: skip


def mutate(data: st.DataObject, body: dict[str, Any]) -> dict[str, Any]:
    """The body with some of its members or elements replaced, removed or added."""
    mutated = copy.deepcopy(body)
    for _ in range(data.draw(st.sampled_from([1, 1, 2]))):
        node: Any = mutated
        while True:
            places = list(node) if isinstance(node, dict) else list(range(len(node)))
            place = data.draw(st.sampled_from([*places, None]))
            if place is None:
                add(node, data.draw(JUNK), data.draw(st.sampled_from(["parameters", "id", "mine"])))
                break
            deeper = isinstance(node[place], dict | list) and data.draw(st.booleans())
            if deeper:
                node = node[place]
                continue
            if data.draw(st.integers(0, 3)):
                node[place] = data.draw(JUNK)
            else:
                del node[place]
            break
    return mutated


def add(node: Any, junk: Any, name: str) -> None:
    if isinstance(node, dict):
        node[name] = junk
    else:
        node.append(junk)


def nest(element: st.SearchStrategy[Any], *shape: int) -> st.SearchStrategy[Any]:
    strategy = element
    for size in reversed(shape):
        strategy = st.lists(strategy, min_size=size, max_size=size)
    return strategy


NUMBERS = st.sampled_from([0, 1, -2, 0.5, -1e30, 2**70])
FLAGS = st.sampled_from([True, False, 0, 1, 0.0, 1.0])
SCALARS = {
    "FP32": NUMBERS,
    "FP64": NUMBERS,
    "INT8": st.sampled_from([0, -128, 127]),
    "BOOL": st.sampled_from([True, False, 0, 1]),
}


@st.composite
def inputs(draw: st.DrawFn, name: str) -> dict[str, Any]:
    datatype = draw(st.sampled_from(sorted(SCALARS)))
    shape = draw(st.lists(st.integers(0, 2), max_size=3))
    nested = draw(nest(SCALARS[datatype], *shape))
    entry = {"name": name, "shape": shape, "datatype": datatype, "data": nested}
    return entry if shape else entry | {"data": [nested]}


@st.composite
def v2_bodies(draw: st.DrawFn) -> dict[str, Any]:
    names = draw(st.lists(st.sampled_from(["query", "mask", "any"]), max_size=2, unique=True))
    outputs = draw(st.lists(st.sampled_from(OUTPUTS), unique=True))
    parameters = st.fixed_dictionaries(
        {},
        optional={
            "causal": st.sampled_from([True, False, "top_left", "bottom_right"]),
            "weights": st.sampled_from(["none", "per_head", "mean", "top_k"]),
            "heads": st.sampled_from(["0", "0,3", "0,", "1_2", ""]),
            "top_k": st.sampled_from([0, 1, 2**31, True]),
            "binary_data_output": st.booleans(),
            "timeout": st.sampled_from([0, 5000, 2**63 - 1]),
            "priority": st.sampled_from([0, 1, 2**64 - 1]),
            "mine": st.sampled_from([1, 0.5, True, "a"]),
        },
    )
    flags = st.fixed_dictionaries({}, optional={"binary_data": st.booleans()})
    return {
        "id": draw(st.sampled_from(["", "7"])),
        "parameters": draw(parameters),
        "inputs": [draw(inputs(name)) for name in names],
        "outputs": [{"name": name, "parameters": draw(flags)} for name in outputs],
    }


@st.composite
def v1_bodies(draw: st.DrawFn) -> dict[str, Any]:
    batch = draw(st.sampled_from([(), (B,)]))
    heads = (B, H) if batch else draw(st.sampled_from([(), (H,)]))
    tensors = st.fixed_dictionaries(
        {"query": nest(NUMBERS, *batch, L, D), "key": nest(NUMBERS, *batch, S, D)},
        optional={
            "value": nest(NUMBERS, *batch, S, D) | st.none(),
            "mask": nest(FLAGS, *heads, L, S),
            "key_mask": nest(FLAGS, *batch, S),
            "bias": nest(NUMBERS, *heads, 1, S),
            "causal": st.sampled_from([True, False, "top_left", "bottom_right", None]),
            "weights": st.sampled_from(["none", "per_head", "mean", None]),
            "model": st.sampled_from(["demo", None]),
            "version": st.sampled_from(["1", None]),
        },
    )
    return dict(draw(tensors))


@given(v2_bodies(), st.data())
@settings(max_examples=300)
def test_v2_requests(body: dict[str, Any], data: st.DataObject) -> None:
    event(compare_v2(mutate(data, body)).value)


@given(v1_bodies(), st.data())
@settings(max_examples=300)
def test_v1_requests(body: dict[str, Any], data: st.DataObject) -> None:
    event(compare_v1(mutate(data, body)).value)


@given(v1_bodies())
def test_both_accept_what_fits_the_contract(body: dict[str, Any]) -> None:
    assert compare_v1(body) is Verdict.BOTH_ACCEPT
