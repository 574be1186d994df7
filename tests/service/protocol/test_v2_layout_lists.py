"""Requests of which all but the numbers in long lists came before are read as if it had not."""

import json
from typing import Any, Final

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.errors import InvalidRequestError
from service.protocol import json_outline, v2_request
from service.protocol.v2_layout import Layouts, V2Request
from tests.service.protocol.test_json_outline import damage, lists_of, tell
from tests.service.protocol.test_schema_agrees import mutate, v2_bodies

NUMBERS: Final = st.sampled_from([0, 1, -2, 0.1, 1e300, 2**70, True, None, "1", [1], float("nan")])


def vary(data: st.DataObject, value: Any, *, is_data: bool = False) -> Any:
    """A body with other numbers in its tensors, and sometimes with what is none."""
    if isinstance(value, dict):
        return {name: vary(data, part, is_data=name == "data") for name, part in value.items()}
    if isinstance(value, list):
        return [vary(data, part, is_data=is_data) for part in value]
    if is_data and data.draw(st.integers(0, 9)) == 0:
        return data.draw(NUMBERS)
    return value + 0.5 if is_data and type(value) is float else value


@given(st.lists(v2_bodies(), min_size=1, max_size=2), st.integers(0, 9), st.data())
@settings(max_examples=200)
def test_a_request_is_read_as_without_those_that_came_before(
    bodies: list[Any], list_bytes: int, data: st.DataObject
) -> None:
    layouts = Layouts()
    for body in bodies:
        kinds = [body, body, vary(data, body), vary(data, body), mutate(data, body)]
        texts = [json.dumps(kind).encode() for kind in kinds]
        for text in (*texts, damage(data, json.dumps(body))):
            exact = tell(lambda text: v2_request.decode_request(text, []), text)
            with lists_of(list_bytes=list_bytes):
                known = tell(lambda text: v2_request.decode_request(text, [], 64, layouts), text)
            assert known == exact


def describe(name: str, array: Any, shape: tuple[int, ...] | None = None) -> dict[str, Any]:
    datatype = "BOOL" if array.dtype == bool else "FP32"
    shape = array.shape if shape is None else shape
    return {"name": name, "shape": shape, "datatype": datatype, "data": array.tolist()}


def write(*inputs: dict[str, Any], **members: Any) -> bytes:
    return json.dumps({"inputs": inputs} | members).encode()


def draw(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


def decode(text: bytes, layouts: Layouts, binary: bytes = b"") -> V2Request:
    lengths = [str(len(text))] if binary else []
    with lists_of(list_bytes=20):
        return v2_request.decode_request(text + binary, lengths, 64, layouts)


def forbid(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nothing but lists be read any more."""

    def parse(*_: Any, **__: Any) -> None:
        raise AssertionError

    monkeypatch.setattr(json_outline, "parse_object", parse)


@pytest.mark.parametrize("flat", [True, False])
def test_other_numbers_are_all_that_is_read(monkeypatch: pytest.MonkeyPatch, *, flat: bool) -> None:
    layouts = Layouts()
    for seed in range(3):
        query, mask = draw(seed, 2, 3, 5), draw(seed + 9, 2, 1, 3, 3) > 0
        shown = [query.ravel(), mask.ravel()] if flat else [query, mask]
        text = write(
            describe("query", shown[0], query.shape), describe("mask", shown[1], mask.shape),
            parameters={"causal": True},
        )  # fmt: skip
        asked = decode(text, layouts)
        tensors = asked.inference.tensors
        assert list(tensors) == ["query", "mask"]
        np.testing.assert_array_equal(tensors["query"], query, strict=True)
        np.testing.assert_array_equal(tensors["mask"], mask, strict=True)
        assert asked.inference.causal == "top_left"
        forbid(monkeypatch)


def test_requests_of_one_outline_are_alike_and_those_of_another_are_not() -> None:
    layouts = Layouts()

    def find_likeness(seed: int, **members: Any) -> object:
        text = write(describe("query", draw(seed, 2, 3, 5)), **members)
        return decode(text, layouts).inference.likeness

    assert find_likeness(0) is None, "it is read as a whole"
    assert find_likeness(1) is not None
    assert find_likeness(2) is find_likeness(1)
    assert find_likeness(3, note=1) is None
    assert find_likeness(4, note=1) is not find_likeness(1)


def test_lists_stand_beside_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    layouts = Layouts()
    for seed in range(2):
        query, key = draw(seed, 2, 3, 5), draw(seed + 9, 2, 4, 5)
        entry = describe("key", key) | {"parameters": {"binary_data_size": key.nbytes}}
        del entry["data"]
        text = write(entry, describe("query", query))
        tensors = decode(text, layouts, key.tobytes()).inference.tensors
        assert list(tensors) == ["key", "query"]
        np.testing.assert_array_equal(tensors["query"], query, strict=True)
        np.testing.assert_array_equal(tensors["key"], key, strict=True)
        forbid(monkeypatch)


@pytest.mark.parametrize(
    ("members", "inputs"),
    [
        pytest.param({"id": "7"}, (), id="an id"),
        pytest.param({}, (describe("bias", np.zeros((1, 1), np.float32)),), id="a short tensor"),
        pytest.param({"mine": list(range(99))}, (), id="a list that nobody reads"),
        pytest.param({"mine": "x" * 4096}, (), id="too long an outline"),
    ],
)
def test_other_requests_are_read_again(
    members: dict[str, Any], inputs: tuple[dict[str, Any], ...]
) -> None:
    layouts = Layouts()
    for seed in range(3):
        text = write(describe("query", draw(seed, 2, 3, 5)), *inputs, **members)
        assert decode(text, layouts).inference.likeness is None


def test_a_list_of_another_size_is_refused_as_ever() -> None:
    layouts = Layouts()
    decode(write(describe("query", draw(0, 2, 3, 5))), layouts)
    with pytest.raises(InvalidRequestError) as caught:
        decode(write(describe("query", draw(0, 2, 3, 4), (2, 3, 5))), layouts)
    assert str(caught.value) == "input 'query' has 24 elements, expected 30 for shape [2, 3, 5]"


def test_a_text_cannot_pose_as_the_outline_of_another() -> None:
    layouts = Layouts()
    text = write(describe("query", draw(0, 2, 3, 5)))
    decode(text, layouts)
    with lists_of(list_bytes=20):
        outline = json_outline.write_outline(text, json_outline.find_lists(text))
    assert layouts.find(outline, 0, 1) is not None
    assert layouts.find(outline, 0) is None
    with pytest.raises(InvalidRequestError) as caught:
        decode(outline, layouts)
    assert str(caught.value) == "'data' of input 'query' is a string, expected a list"


def test_the_bound_of_the_depth_holds_for_what_came_before() -> None:
    layouts, query = Layouts(), draw(0, 2, 3, 5)
    texts = [write(describe("query", one, query.shape)) for one in (query, query[:, None])]
    with lists_of(list_bytes=20):
        for _ in range(2):
            v2_request.decode_request(texts[0], [], 6, layouts)
            with pytest.raises(InvalidRequestError, match=r" is nested too deeply: "):
                v2_request.decode_request(texts[1], [], 6, layouts)
