"""JSON is nested no deeper than the setting says."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.errors import InvalidRequestError
from service.protocol.json_depth import check_depth, is_deeper

VALUES = st.recursive(
    st.none() | st.integers(0, 9) | st.text("[{", max_size=2),
    lambda part: st.lists(part, max_size=3) | st.dictionaries(st.text(max_size=2), part),
    max_leaves=12,
)


def count_depth(value: Any) -> int:
    if not isinstance(value, list | dict):
        return 0
    parts = value.values() if isinstance(value, dict) else value
    return 1 + max(map(count_depth, parts), default=0)


@given(VALUES, st.integers(0, 6))
def test_the_depth_is_that_of_lists_and_objects_in_each_other(value: Any, depth: int) -> None:
    assert is_deeper(value, depth) == (count_depth(value) > depth)


@pytest.mark.parametrize("value", [[1, [2, [3]]], {"a": [{"b": "[[[["}]}, [[], [[]]]])
def test_what_is_deeper_is_refused_with_the_name_of_the_setting(value: Any) -> None:
    text = json.dumps(value).encode()
    check_depth(value, text, "it", 3)
    with pytest.raises(InvalidRequestError) as caught:
        check_depth(value, text, "it", 2)
    assert str(caught.value) == (
        "it is nested too deeply: expected at most 2 lists and objects in each other "
        "(LIMELIGHT_MAX_JSON_DEPTH)"
    )


def test_brackets_in_strings_are_no_depth() -> None:
    check_depth(["[[[[[["], b'["[[[[[["]', "it", 1)
