"""The options of /v1/attention in a query string."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.errors import InvalidRequestError
from service.protocol.query_string import QUERY_OPTIONS, read_query_string


def refuse(*pairs: tuple[str, str]) -> str:
    with pytest.raises(InvalidRequestError) as caught:
        read_query_string(pairs)
    return str(caught.value)


def test_all_options_together() -> None:
    pairs = [
        ("model", "demo"), ("version", "1"), ("causal", "true"), ("weights", "top_k"),
        ("heads", "2,0"), ("top_k", "3"), ("format", "npz"),
    ]  # fmt: skip
    assert read_query_string(pairs) == {
        "model": "demo", "version": "1", "causal": "top_left", "weights": "top_k",
        "heads": (2, 0), "top_k": 3, "format": "npz",
    }  # fmt: skip


def test_no_option_is_an_option_too() -> None:
    assert read_query_string([]) == {}


@pytest.mark.parametrize(
    ("text", "form"),
    [("true", "top_left"), ("false", False), ("top_left", "top_left"),
     ("bottom_right", "bottom_right")],
)  # fmt: skip
def test_causal_is_said_in_the_words_of_json(text: str, form: Any) -> None:
    assert read_query_string([("causal", text)]) == {"causal": form}


@pytest.mark.parametrize("text", ["True", "1", "", "null", "left"])
def test_causal_has_no_other_words(text: str) -> None:
    assert refuse(("causal", text)) == (
        f"parameter 'causal' is \"{text}\", expected true, false, "
        '"top_left" (as true) or "bottom_right"'
    )


def test_weights_have_four_words() -> None:
    assert refuse(("weights", "all")) == (
        'parameter \'weights\' is "all", expected "none", "per_head", "mean" or "top_k"'
    )


def test_numbers_are_written_in_digits() -> None:
    assert refuse(("top_k", "1_0")) == (
        "parameter 'top_k' is \"1_0\", expected a whole number from 1 to 2147483647"
    )
    assert refuse(("heads", "[0,3]")) == (
        "parameter 'heads' is \"[0,3]\", expected the numbers of heads with commas between them, "
        'as "0,3"; leave it out for all of them'
    )


def test_an_unknown_option_is_refused_with_the_known_ones() -> None:
    assert refuse(("mask", "1")) == (
        'option "mask" of the query string is unknown, expected some of model, version, causal, '
        "weights, heads, top_k, format"
    )


def test_an_option_comes_once() -> None:
    assert refuse(("model", "a"), ("model", "a")) == "option 'model' comes twice, expected once"


@given(st.lists(st.tuples(st.sampled_from(QUERY_OPTIONS) | st.text(), st.text()), max_size=4))
def test_any_pairs_are_read_or_refused(pairs: list[tuple[str, str]]) -> None:
    try:
        options = read_query_string(pairs)
    except InvalidRequestError:
        return
    assert options.keys() == dict(pairs).keys()
