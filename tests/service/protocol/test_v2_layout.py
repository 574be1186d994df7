"""Requests whose JSON came before are read as if it had not."""

import gc
import json
import threading
import weakref
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.datatypes import DTYPES
from service.errors import InvalidRequestError, NotOfferedError
from service.protocol.v2_layout import MAX_BYTES, MAX_LAYOUTS, Layouts, V2Request
from service.protocol.v2_request import decode_request

NAMES: Final = ("query", "key", "value", "mask", "key_mask", "bias")


def write(*inputs: dict[str, Any], **members: Any) -> bytes:
    return json.dumps({"inputs": inputs} | members).encode()


def describe(
    name: str, shape: list[int], datatype: str = "FP32", data: Sequence[float] | None = None
) -> dict[str, Any]:
    """One input: with its data, or with the size of what follows the JSON."""
    entry = {"name": name, "shape": shape, "datatype": datatype}
    if data is not None:
        return entry | {"data": data}
    size = int(np.prod(shape)) * DTYPES[datatype].itemsize
    return entry | {"parameters": {"binary_data_size": size}}


def decode(text: bytes, binary: bytes, layouts: Layouts | None = None) -> V2Request | str:
    """The request, or why it is none."""
    try:
        return decode_request(text + binary, [str(len(text))], layouts=layouts)
    except (InvalidRequestError, NotOfferedError) as error:
        return str(error)


def spell(request: V2Request | str) -> object:
    """All that a request says, its tensors bit for bit."""
    if isinstance(request, str):
        return request
    inference = request.inference
    tensors = [
        (name, array.dtype, array.shape, array.tobytes())
        for name, array in inference.tensors.items()
    ]
    return (
        request.id, request.outputs, request.schedule, inference.causal, inference.weights, tensors,
    )  # fmt: skip


@st.composite
def requests(draw: st.DrawFn) -> tuple[bytes, int]:
    """A JSON text, and how many bytes its inputs say follow it."""
    inputs, follow = [], 0
    for name in draw(st.permutations(NAMES))[: draw(st.integers(1, 4))]:
        shape = draw(st.lists(st.integers(0, 3), min_size=1, max_size=3))
        datatype = draw(st.sampled_from(["FP32", "FP64", "FP16", "BOOL", "INT64", "UINT8"]))
        count = int(np.prod(shape))
        if draw(st.booleans()):
            inputs.append(describe(name, shape, datatype))
            follow += count * DTYPES[datatype].itemsize
        else:
            data = [datatype == "BOOL" or 1] * count
            inputs.append(describe(name, shape, datatype, data))
    members: dict[str, Any] = {}
    if draw(st.booleans()):
        members["id"] = draw(st.sampled_from(["", "7", None]))
    if draw(st.booleans()):
        members["parameters"] = draw(
            st.sampled_from(
                [
                    {"binary_data_output": True},
                    {"causal": True, "timeout": 5000},
                    {"weights": "top_k", "top_k": 2, "heads": "0,1", "priority": 3},
                    {"sequence_id": 7},
                ]
            )
        )
    if draw(st.booleans()):
        members["outputs"] = [
            {"name": "output", "parameters": {"binary_data": draw(st.booleans())}}
        ]
    return write(*inputs, **members), follow


@given(st.lists(requests(), min_size=1, max_size=3), st.data())
def test_a_request_is_read_as_without_those_that_came_before(
    kinds: list[tuple[bytes, int]], data: st.DataObject
) -> None:
    layouts = Layouts()
    for seed in range(6):
        text, follow = data.draw(st.sampled_from(kinds))
        size = max(0, follow + data.draw(st.sampled_from([0, 0, 0, -1, 1, 4])))
        binary = np.random.default_rng(seed).integers(0, 2, size, np.uint8).tobytes()
        found = spell(decode(text, binary, layouts))
        assert found == spell(decode(text, binary))


def test_the_same_json_gives_other_tensors_with_other_bytes() -> None:
    layouts, text = Layouts(), write(describe("query", [1, 2, 3]), describe("key", [1, 4, 3]))
    for seed in range(3):
        numbers = np.random.default_rng(seed).standard_normal(18).astype(np.float32)
        body = text + numbers.tobytes()
        asked = decode_request(body, [str(len(text))], layouts=layouts)
        tensors = asked.inference.tensors
        np.testing.assert_array_equal(tensors["query"], numbers[:6].reshape(1, 2, 3))
        np.testing.assert_array_equal(tensors["key"], numbers[6:].reshape(1, 4, 3))
        assert np.shares_memory(tensors["key"], np.frombuffer(body, np.uint8)), "nothing is copied"
        assert not tensors["key"].flags.writeable
    assert layouts.find(text, 72) is not None


def is_kept(text: bytes, binary: bytes) -> bool:
    """Whether a request like this one would not be read again."""
    layouts = Layouts()
    decode(text, binary, layouts)
    return layouts.find(text, len(binary)) is not None


QUERY = describe("query", [1, 2, 3])
KEY = describe("key", [1, 1, 3], data=[1, 2, 3])
PADDED = write(QUERY) + b" " * MAX_BYTES


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        pytest.param(write(QUERY), True, id="tensors alone"),
        pytest.param(write(QUERY, id=""), True, id="an empty id"),
        pytest.param(write(QUERY, id="7"), False, id="an id"),
        pytest.param(write(QUERY, KEY), False, id="data in the JSON"),
        pytest.param(write(KEY, QUERY), False, id="data in the JSON, first"),
        pytest.param(PADDED[:MAX_BYTES], True, id="as long as may be"),
        pytest.param(PADDED[: MAX_BYTES + 1], False, id="too long"),
        pytest.param(write(QUERY, parameters={"causal": 7}), False, id="an error"),
    ],
)
def test_what_is_kept_is_what_says_the_same_each_time(text: bytes, kept: bool) -> None:
    assert is_kept(text, bytes(24)) is kept


def test_json_alone_is_not_kept() -> None:
    assert not is_kept(write(KEY | {"name": "query"}), b"")


@pytest.mark.parametrize("size", [0, 20, 23, 25, 28, 48])
def test_another_number_of_bytes_behind_the_same_json_is_read_again(size: int) -> None:
    layouts, text = Layouts(), write(QUERY)
    decode(text, bytes(24), layouts)
    assert layouts.find(text, size) is None
    assert decode(text, bytes(size), layouts) == (
        f"input 'query' needs 24 bytes at offset 0 behind the JSON, but only {size} follow it"
        if size < 24
        else f"{size} bytes follow the JSON, but the inputs' binary_data_size add up to 24"
    )


def test_the_oldest_text_goes_when_there_are_too_many() -> None:
    layouts = Layouts()
    texts = [write(QUERY, note=number) for number in range(MAX_LAYOUTS + 2)]
    for text in texts:
        decode(text, bytes(24), layouts)
    kept = [layouts.find(text, 24) is not None for text in texts]
    assert kept == [False, False] + [True] * MAX_LAYOUTS


def test_a_text_that_comes_again_takes_no_place_from_others() -> None:
    layouts = Layouts()
    texts = [write(QUERY, note=number) for number in range(MAX_LAYOUTS)]
    asked = decode(texts[0], bytes(24))
    assert isinstance(asked, V2Request)
    for text in (*texts, texts[7], texts[7]):  # as two threads may that read it at once
        layouts.keep(text, asked, 24, [])
    assert all(layouts.find(text, 24) for text in texts)


def test_no_tensor_is_held_by_what_is_kept() -> None:
    layouts, text = Layouts(), write(QUERY)
    body = np.frombuffer(text + bytes(24), np.uint8).copy()
    gone = weakref.ref(body)
    gc.disable()
    try:
        for _ in range(2):
            decode_request(body.data, [str(len(text))], layouts=layouts)
        del body
        assert gone() is None
    finally:
        gc.enable()
    assert layouts.find(text, 24) is not None


def test_threads_that_read_at_the_same_time_get_their_own_tensors() -> None:
    layouts, together = Layouts(), threading.Barrier(4)
    wrong: list[int] = []

    def read(number: int) -> None:
        together.wait(10)
        for turn in range(200):
            text = write(QUERY, note=turn)
            asked = decode(text, np.full(6, number, np.float32).tobytes(), layouts)
            assert isinstance(asked, V2Request)
            if not (asked.inference.tensors["query"] == number).all():
                wrong.append(turn)

    threads = [threading.Thread(target=read, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert wrong == []
    assert sum(layouts.find(write(QUERY, note=turn), 24) is not None for turn in range(200)) == (
        MAX_LAYOUTS
    )
