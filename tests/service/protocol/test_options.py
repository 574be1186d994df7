"""The option `causal`, and how a client's value is shown to it."""

import pytest

from service.errors import InvalidRequestError
from service.protocol.options import read_causal, show


@pytest.mark.parametrize(
    ("value", "form"),
    [
        (True, "top_left"),
        (False, False),
        (None, None),
        ("top_left", "top_left"),
        ("bottom_right", "bottom_right"),
    ],
)
def test_causal_has_two_alignments(value: object, form: object) -> None:
    assert read_causal(value) == form


@pytest.mark.parametrize(
    ("value", "shown"),
    [(1, "1"), (0, "0"), ("true", '"true"'), ("", '""'), ({}, "an object"), (1.0, "1.0")],
)
def test_causal_is_nothing_else(value: object, shown: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        read_causal(value)
    assert str(caught.value) == (
        f"parameter 'causal' is {shown}, expected true, false, "
        '"top_left" (as true) or "bottom_right"'
    )


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "null"),
        (True, "true"),
        (False, "false"),
        (12, "12"),
        (1.5, "1.5"),
        ("text", '"text"'),
        ('new\nline "ü"', r'"new\nline \"ü\""'),
        ({"a": 1}, "an object"),
        ([1], "a list"),
        ("x" * 62, f'"{"x" * 62}"'),
        ("x" * 63, f'"{"x" * 60}...'),
        (10**70, f"1{'0' * 60}..."),
    ],
)
def test_a_value_is_shown_short_and_as_json_spells_it(value: object, shown: str) -> None:
    assert show(value) == shown
