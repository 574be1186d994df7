"""JSON text: what is JSON, what the bare tokens of load tools mean, and how faults are told."""

import json
import math
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from service.errors import InvalidRequestError
from service.protocol.json_text import name_type, parse_json, parse_object

NUMBERS = st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


def refuse(text: bytes, *, non_finite: bool = True) -> str:
    with pytest.raises(InvalidRequestError) as caught:
        parse_object(text, what="the request", non_finite=non_finite)
    return str(caught.value)


@given(st.dictionaries(st.text(), VALUES))
def test_an_object_comes_back(value: dict[str, Any]) -> None:
    text = json.dumps(value).encode()
    assert parse_object(text, what="it", non_finite=False) == value
    assert parse_object(memoryview(text), what="it", non_finite=True) == value


@given(st.dictionaries(st.text(), VALUES))
def test_tokens_beside_it_change_nothing(value: dict[str, Any]) -> None:
    text = json.dumps([value, math.inf, -math.inf, math.nan]).encode()
    found, high, low, nan = parse_json(text, what="it", non_finite=True)
    assert (found, high, low) == (value, math.inf, -math.inf)
    assert math.isnan(nan)


@given(st.binary(max_size=40))
@example(b'{"a": "\xff"}')
@example(b'{"a": NaN, "b": "\xff"}')
@example(b'{"a": NaN, "b": ')
@example(b"{NaN: 1}")
@example(b"-NaN")
@example(b"0NaN")
def test_any_bytes_are_parsed_or_refused(text: bytes) -> None:
    for non_finite in (False, True):
        with suppress(InvalidRequestError):
            parse_object(text, what="it", non_finite=non_finite)


@pytest.mark.parametrize("token", ["NaN", "Infinity", "-Infinity"])
def test_tokens_are_no_json_where_they_are_not_wanted(token: str) -> None:
    assert refuse(b'{"a": %s}' % token.encode(), non_finite=False) == (
        "the request is not JSON: it holds NaN or Infinity, which JSON cannot say; send npz or "
        "safetensors, and to hide a key a mask or a bias of -1e30"
    )


def test_a_token_in_a_string_is_text() -> None:
    text = b'{"a": "NaN", "b": Infinity}'
    assert parse_object(text, what="it", non_finite=True) == {"a": "NaN", "b": math.inf}


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (b"[1]", "a list"),
        (b'"a"', "a string"),
        (b"true", "a boolean"),
        (b"1", "a number"),
        (b"1.5", "a number"),
        (b"null", "null"),
        (b"NaN", "a number"),
    ],
)
def test_only_an_object_will_do(text: bytes, kind: str) -> None:
    assert refuse(text) == f"the request is {kind}, expected a JSON object"


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (b"", "line 1, column 1"),
        (b'{"a": 1,\n "b": x}', "line 2, column 7"),
        (b'{"a": NaN,\n "b": -Infinity, "c": x}', "line 2, column 23"),
        (b'{"a": NaN, "b": -NaN}', "line 1, column 17"),
        (b"\xef\xbb\xbf{}", "line 1, column 1"),
    ],
)
def test_a_fault_is_told_with_its_place(text: bytes, place: str) -> None:
    said = refuse(text)
    assert said.startswith("the request is not JSON: ")
    assert said.endswith(f" at {place}")


@pytest.mark.parametrize("token", [b"1", b"NaN"])
def test_bytes_that_are_no_utf8_are_refused(token: bytes) -> None:
    assert refuse(b'{"a": %s, "b": "\xff"}' % token).startswith("the request is not JSON: ")


@pytest.mark.parametrize("token", [b"1", b"NaN"])
@pytest.mark.parametrize("bracket", [b"[]", b"{}"])
def test_deep_nesting_is_refused(token: bytes, bracket: bytes) -> None:
    opening = b"[" if bracket == b"[]" else b'{"a":'
    for depth in (64, 1022, 5000):
        text = b'{"a":' + opening * depth + token + bracket[1:] * depth + b"}"
        assert refuse(text) == (
            "the request is nested too deeply: expected at most 64 lists and objects in each "
            "other (LIMELIGHT_MAX_JSON_DEPTH)"
        )
    text = b'{"a":' + opening * 63 + token + bracket[1:] * 63 + b"}"
    assert parse_object(text, what="it", non_finite=True).keys() == {"a"}


def test_how_deep_is_said_by_the_caller() -> None:
    text = b'{"a":' + b"[" * 1023 + b"]" * 1023 + b"}"
    assert parse_object(text, what="it", non_finite=False, max_depth=1024).keys() == {"a"}
    with pytest.raises(InvalidRequestError, match=r"expected at most 1023 lists and objects"):
        parse_object(text, what="it", non_finite=False, max_depth=1023)


def test_nesting_that_only_one_of_the_two_parsers_may_take_breaks_nothing() -> None:
    """Python's own bound differs from version to version, and with the depth of the call."""
    text = b'{"a":' + b"[" * 1020 + b"NaN" + b"]" * 1020 + b"}"
    with suppress(InvalidRequestError):
        assert parse_object(text, what="it", non_finite=True, max_depth=1024).keys() == {"a"}


@pytest.mark.parametrize("token", [b"1", b"NaN"])
def test_a_number_beyond_float64_is_refused_and_not_made_infinite(token: bytes) -> None:
    assert refuse(b'{"a": [%s, 1e400]}' % token).startswith("the request is not JSON: ")


@pytest.mark.parametrize("token", [b"1", b"NaN"])
@pytest.mark.parametrize("half", [rb"\ud800", rb"\udc00", rb"\udc00\ud800"])
def test_half_a_surrogate_is_refused_since_no_answer_could_repeat_it(
    token: bytes, half: bytes
) -> None:
    assert refuse(b'{"a": %s, "id": "%s"}' % (token, half)).startswith("the request is not JSON: ")


@pytest.mark.parametrize("token", [b"1", b"NaN"])
def test_a_whole_surrogate_pair_is_one_character(token: bytes) -> None:
    text = rb'{"a": %s, "id": "\ud83d\ude00"}' % token
    assert parse_object(text, what="it", non_finite=True)["id"] == "\N{GRINNING FACE}"


def test_a_whole_number_of_more_digits_than_python_reads_is_refused() -> None:
    assert refuse(b'{"a": NaN, "b": %s}' % (b"9" * 5000)).startswith("the request is not JSON: ")


@pytest.mark.parametrize(
    ("value", "name"),
    [({}, "an object"), ([], "a list"), ("", "a string"), (True, "a boolean"), (1, "a number"),
     (1.5, "a number"), (None, "null")],
)  # fmt: skip
def test_a_type_has_the_name_that_json_gives_it(value: object, name: str) -> None:
    assert name_type(value) == name
