"""Long lists are read apart, and that changes neither a value nor a refusal."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from service.errors import InvalidRequestError, ServiceError
from service.protocol import attention_request, json_numbers, json_outline, v2_request
from service.protocol.json_numbers import OddListError
from service.protocol.json_outline import LongList, find_lists, read_object, write_outline
from service.protocol.json_text import parse_object
from tests.service.protocol.test_schema_agrees import mutate, v1_bodies, v2_bodies

B, L, D = 3, 4, 5
TOKENS = st.sampled_from(
    ["[", "]", ",", "{", "}", '"', ":", " ", "\\", "\0", "1", "-", "e9", "NaN", "null", "true",
     r"\u0000", r"\u00000", r'"\u00000"', "\xff"]
)  # fmt: skip


@contextmanager
def lists_of(*, list_bytes: int, piece_bytes: int = 4) -> Iterator[None]:
    """Count lists of more bytes as long."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_outline, "LONG_TEXT_BYTES", 0)
        patch.setattr(json_outline, "LONG_LIST_BYTES", list_bytes)
        patch.setattr(json_numbers, "PIECE_BYTES", piece_bytes)
        yield


def decode_v2(text: bytes) -> Any:
    return v2_request.decode_request(text, [])


def decode_v1(text: bytes) -> Any:
    return attention_request.decode_request(text, "json", {"version": "1"}, 0)


def tell(decode: Callable[[bytes], Any], text: bytes) -> Any:
    """All that can be known of an outcome."""
    try:
        asked = decode(text)
    except ServiceError as error:
        return repr(error)
    tensors = {n: (a.dtype, a.shape, a.tobytes()) for n, a in asked.inference.tensors.items()}
    rest = [getattr(asked, name) for name in asked.__slots__ if name != "inference"]
    return tensors, asked.inference.causal, asked.inference.weights, rest


def compare(decode: Callable[[bytes], Any], text: bytes, list_bytes: int) -> None:
    exact = tell(decode, text)
    with lists_of(list_bytes=list_bytes):
        assert tell(decode, text) == exact
    event("refused" if isinstance(exact, str) else "read")


def damage(data: st.DataObject, text: str) -> bytes:
    start = data.draw(st.integers(0, len(text)))
    stop = data.draw(st.integers(start, min(len(text), start + 2)))
    return (text[:start] + data.draw(TOKENS) + text[stop:]).encode("latin-1")


@given(v2_bodies(), st.integers(0, 9), st.data())
@settings(max_examples=300)
def test_v2_requests_mean_the_same(body: Any, list_bytes: int, data: st.DataObject) -> None:
    compare(decode_v2, json.dumps(body).encode(), list_bytes)
    compare(decode_v2, json.dumps(mutate(data, body)).encode(), list_bytes)
    compare(decode_v2, damage(data, json.dumps(body)), list_bytes)


@given(v1_bodies(), st.integers(0, 9), st.data())
@settings(max_examples=300)
def test_v1_requests_mean_the_same(body: Any, list_bytes: int, data: st.DataObject) -> None:
    compare(decode_v1, json.dumps(body).encode(), list_bytes)
    compare(decode_v1, json.dumps(mutate(data, body)).encode(), list_bytes)
    compare(decode_v1, damage(data, json.dumps(body)), list_bytes)


def draw_query() -> Any:
    return np.random.default_rng(3).standard_normal((B, L, D), np.float32)


def write_v2(data: Any, shape: tuple[int, ...] = (B, L, D), **members: Any) -> bytes:
    entry = {"name": "query", "shape": shape, "datatype": "FP32", "data": data}
    return json.dumps({"inputs": [entry], **members}).encode()


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("flat", [True, False])
def test_the_tensors_of_a_request_are_not_parsed_as_a_whole(
    monkeypatch: pytest.MonkeyPatch, indent: int | None, *, flat: bool
) -> None:
    query, seen = draw_query(), []
    given = write_v2((query.ravel() if flat else query).tolist(), id="7", outputs=[])
    text = json.dumps(json.loads(given), indent=indent).encode()

    def parse(text: bytes, **options: Any) -> dict[str, Any]:
        seen.append(text)
        return parse_object(text, **options)

    monkeypatch.setattr(json_outline, "parse_object", parse)
    with lists_of(list_bytes=99):
        found = decode_v2(text)
    (outline,) = seen
    assert json.loads(outline)["inputs"][0]["data"] == "\x000"
    assert found.inference.tensors["query"].tobytes() == query.tobytes()
    assert found.id == "7"


def test_nothing_is_apart_in_a_short_text() -> None:
    seen: list[dict[str, Any]] = []
    read_object(b'{"a": [%b1]}' % (b"1," * 3000), seen.append, what="it", non_finite=False)
    assert seen == [{"a": [1] * 3001}]


def test_a_list_that_nobody_reads_is_parsed_nevertheless() -> None:
    query = draw_query().tolist()
    with lists_of(list_bytes=99):
        assert decode_v2(write_v2(query, mine=query)).inference.tensors.keys() == {"query"}
        with pytest.raises(InvalidRequestError, match=r"^the request is not JSON: "):
            decode_v2(write_v2(query, mine=query).replace(b"]]]}", b"]}"))


def test_a_string_cannot_pose_as_a_list() -> None:
    query = draw_query().tolist()
    with lists_of(list_bytes=99):
        assert decode_v2(write_v2(query, id="\x000")).id == "\x000"
        with pytest.raises(InvalidRequestError) as caught:
            decode_v2(write_v2("\x000", mine=query))
    assert str(caught.value) == "'data' of input 'query' is a string, expected a list"


def test_escapes_in_strings_are_understood() -> None:
    query = draw_query().tolist()
    for name in ('a"[', "\\", 'b\\"', "\N{GRINNING FACE}"):
        text = write_v2(query, id=name)
        assert len(find_text(text)) == 1
        with lists_of(list_bytes=99):
            assert decode_v2(text).id == name


def find_text(text: bytes) -> list[LongList]:
    with lists_of(list_bytes=99):
        return find_lists(text)


@pytest.mark.parametrize(
    "text",
    [
        b'{"a": [%b], "id": "%b"}' % (b"1," * 99, b"a" * 2000),
        b'{"a": [%b], "b": [%b]}' % (b"1," * 99, b'"",' * 2000),
        b'{"a": [%b], "id": "' % (b"1," * 99),
    ],
)
def test_no_list_is_looked_for_in_a_text_that_is_no_request(text: bytes) -> None:
    assert find_text(text) == []


def test_a_text_with_a_string_like_those_that_stand_for_lists_has_no_outline() -> None:
    text = rb'{"a": [%b], "id": "\u0000"}' % (b"1," * 99)
    with pytest.raises(OddListError):
        write_outline(text, find_text(text))


@pytest.mark.parametrize("odd", [b"}", b"]", b"[", b"1}, {"])
@pytest.mark.parametrize("place", [3, 200, 397])
def test_a_bracket_or_brace_within_a_list_is_no_json(odd: bytes, place: int) -> None:
    numbers = b"1," * 200
    text = b'{"inputs": [{"data": [%b1]}]}' % (numbers[:place] + odd + numbers[place:])
    with lists_of(list_bytes=99), pytest.raises(InvalidRequestError, match=r"^the request is not "):
        decode_v2(text)


def test_numbers_that_only_the_exact_parser_takes_are_taken() -> None:
    query = draw_query().ravel().tolist()
    with lists_of(list_bytes=99):
        text = write_v2(query).replace(b"[" + str(query[0]).encode(), b"[NaN")
        found = decode_v2(text).inference.tensors["query"].ravel()
    np.testing.assert_array_equal(found, [np.nan, *query[1:]])


@pytest.mark.parametrize("depth", [8, 9, 64])
def test_the_bound_of_the_depth_is_the_same(depth: int) -> None:
    query = draw_query().tolist()
    at_bound = {"a": json.loads("[" * (depth - 1) + "]" * (depth - 1))}
    with lists_of(list_bytes=99):
        for text in (write_v2(query), write_v2(query, mine=at_bound["a"])):
            v2_request.decode_request(text, [], depth)
        with pytest.raises(InvalidRequestError) as caught:
            v2_request.decode_request(write_v2(query, mine=at_bound), [], depth)
    assert str(caught.value) == (
        f"the request is nested too deeply: expected at most {depth} lists and objects in each "
        "other (LIMELIGHT_MAX_JSON_DEPTH)"
    )


@pytest.mark.parametrize("spelling", [float, int, bool])
def test_a_long_mask_of_v1_takes_all_its_spellings(spelling: type) -> None:
    mask = np.tri(L, dtype=np.bool_)
    members = {"query": draw_query().tolist(), "mask": mask.astype(spelling).tolist()}
    with lists_of(list_bytes=9):
        found = decode_v1(json.dumps(members).encode()).inference.tensors["mask"]
    assert found.dtype == np.bool_
    np.testing.assert_array_equal(found, mask)


def test_an_option_in_the_body_is_read_once_though_the_text_is_read_twice() -> None:
    members = {"causal": True, "query": [[1.5, None]]}
    with lists_of(list_bytes=5), pytest.raises(InvalidRequestError) as caught:
        decode_v1(json.dumps(members).encode())
    assert str(caught.value) == "input 'query' holds null at element 1, expected numbers for FP32"


def test_a_long_list_with_tokens_is_read_apart_where_they_are_numbers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Load tools send them: parsed with the whole text, 24 MB stopped other threads for 0.5 s."""
    parsed = []

    def note(text: bytes, **options: Any) -> dict[str, Any]:
        parsed.append(len(text))
        return parse_object(text, **options)

    monkeypatch.setattr(json_outline, "parse_object", note)
    entry = {"name": "query", "shape": [3, 1000], "datatype": "FP32", "data": [0.5, np.nan] * 1500}
    asked = v2_request.decode_request(json.dumps({"inputs": [entry]}).encode(), [])
    assert np.isnan(asked.inference.tensors["query"]).sum() == 1500
    assert parsed == [pytest.approx(80, abs=20)]
