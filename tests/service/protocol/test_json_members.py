"""A member that comes twice is never settled silently."""

import json
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.errors import InvalidRequestError
from service.protocol.json_members import check_members
from service.protocol.json_text import parse_object

SCALARS = st.none() | st.booleans() | st.integers(-9, 9) | st.text(':\\"a{}[],', max_size=4)
VALUES = st.recursive(
    SCALARS,
    lambda part: st.lists(part, max_size=3) | st.dictionaries(st.text(":a", max_size=3), part),
    max_leaves=12,
)


@given(st.dictionaries(st.text(":a", max_size=3), VALUES, max_size=4))
def test_members_that_are_all_different_pass(value: dict[str, Any]) -> None:
    check_members(value, json.dumps(value).encode(), "it")


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1, "a": 1}',
        '{"a": {"b:": "::", "c": 1, "c": 2}}',
        '{"inputs": [{"name": "q"}, {"name": "k", "name": "v"}]}',
        '{"data": [1, {"x": 1, "x": 2}]}',
        '{"a": 1, "\\u0061": 2}',
        '{"a": "one : more", "a": ""}',
        '{"a": "", "a": "one : more"}',
        '{"a": NaN, "a": 1}',
        '{"a": 1, "a": 2, "id": "\\u003a"}',
    ],
)
def test_a_member_that_comes_twice_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequestError, match=r"^it is ambiguous: '.*' comes twice, exp"):
        parse_object(text.encode(), what="it", non_finite=True)


def test_an_escaped_colon_costs_time_and_no_more() -> None:
    text = b'{"id": "a\\u003ab", "x": ":"}'
    assert parse_object(text, what="it", non_finite=False) == orjson.loads(text)
