"""The options `weights`, `heads` and `top_k`, each alone and all together."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.errors import InvalidRequestError
from service.inference import WantedWeights, WeightsForm
from service.protocol.weights_options import (
    choose_weights,
    read_form,
    read_heads_list,
    read_heads_text,
    read_top_k,
    read_top_k_text,
)

HEADS = st.lists(st.integers(0, 99), min_size=1, unique=True)


def refuse(read: Callable[..., object], *values: object) -> str:
    with pytest.raises(InvalidRequestError) as caught:
        read(*values)
    return str(caught.value)


@pytest.mark.parametrize("form", ["none", "per_head", "mean", "top_k"])
def test_weights_have_four_forms(form: str) -> None:
    assert read_form(form) == form


@pytest.mark.parametrize(
    ("value", "shown"), [(True, "true"), (None, "null"), ("all", '"all"'), (["none"], "a list")]
)
def test_weights_have_no_other_form(value: object, shown: str) -> None:
    assert refuse(read_form, value) == (
        f'parameter \'weights\' is {shown}, expected "none", "per_head", "mean" or "top_k"'
    )


@given(HEADS)
def test_heads_are_a_list_or_a_text_of_the_same_numbers(heads: list[int]) -> None:
    assert read_heads_list(heads) == tuple(heads)
    assert read_heads_text(",".join(map(str, heads))) == tuple(heads)


@pytest.mark.parametrize(
    ("value", "shown"),
    [([], "an empty list"), ("0,3", '"0,3"'), (3, "3"), (True, "true"), ({}, "an object")],
)
def test_heads_in_json_are_a_list_that_is_not_empty(value: object, shown: str) -> None:
    assert refuse(read_heads_list, value) == (
        f"parameter 'heads' is {shown}, expected a list of the numbers of heads, as [0, 3]; "
        "leave it out for all of them"
    )


@pytest.mark.parametrize(
    ("head", "shown"),
    [(True, "true"), (1.5, "1.5"), (2.0, "2.0"), (-1, "-1"), ("1", '"1"'), (None, "null"),
     ([1], "a list"), (2**31, "2147483648")],
)  # fmt: skip
def test_heads_in_json_are_whole_numbers(head: object, shown: str) -> None:
    assert refuse(read_heads_list, [0, head]) == (
        f"parameter 'heads' holds {shown}, expected whole numbers from 0 on, as [0, 3]"
    )


@pytest.mark.parametrize(
    ("value", "shown"),
    [(text, f'"{text}"') for text in ("", "1_2", "0,", ",0", "0 3", "0, 3", "-1", "+1", "1.5",
     "true", "[0,3]", "\u0663", "1000000000")] + [(0, "0"), (True, "true"), (1.5, "1.5")],
)  # fmt: skip
def test_heads_in_a_text_are_digits_and_commas(value: object, shown: str) -> None:
    assert refuse(read_heads_text, value) == (
        f"parameter 'heads' is {shown}, expected the numbers of heads with commas between them, "
        'as "0,3"; leave it out for all of them'
    )


@pytest.mark.parametrize(("read", "value"), [(read_heads_list, [1, 3, 0, 3]),
                                             (read_heads_text, "1,3,0,03")])  # fmt: skip
def test_a_head_comes_once(read: Any, value: object) -> None:
    assert refuse(read, value) == "parameter 'heads' holds 3 twice, expected it once"


@pytest.mark.parametrize(("value", "text"), [(1, "1"), (17, "17"), (2**31 - 1, "2147483647")])
def test_top_k_is_a_number_of_keys(value: int, text: str) -> None:
    assert read_top_k(value) == value
    assert read_top_k_text(text) == value


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0, "0"), (-1, "-1"), (True, "true"), (1.0, "1.0"), ("2", '"2"'), (None, "null"),
     ([2], "a list"), (2**31, "2147483648")],
)  # fmt: skip
def test_top_k_is_nothing_else(value: object, shown: str) -> None:
    assert refuse(read_top_k, value) == (
        f"parameter 'top_k' is {shown}, expected a whole number from 1 to 2147483647"
    )


@pytest.mark.parametrize(
    ("text", "shown"),
    [("0", "0"), ("1_0", '"1_0"'), ("", '""'), ("-1", '"-1"'), ("1.0", '"1.0"'), (" 1", '" 1"'),
     ("\u0663", '"\u0663"'), ("2147483648", "2147483648"), ("9" * 11, f'"{"9" * 11}"')],
)  # fmt: skip
def test_top_k_in_a_text_is_in_decimal_digits(text: str, shown: str) -> None:
    assert refuse(read_top_k_text, text) == (
        f"parameter 'top_k' is {shown}, expected a whole number from 1 to 2147483647"
    )


@pytest.mark.parametrize(
    ("form", "heads", "top_k"),
    [("none", None, None), ("per_head", None, None), ("per_head", (1,), None),
     ("mean", (0, 2), None), ("top_k", None, 3), ("top_k", (2, 1), 3)],
)  # fmt: skip
def test_options_that_fit_each_other(
    form: WeightsForm, heads: tuple[int, ...] | None, top_k: int | None
) -> None:
    assert choose_weights(form, heads, top_k) == WantedWeights(form, heads, top_k)


def test_heads_of_no_weights_are_refused() -> None:
    assert refuse(choose_weights, "none", (0,), None) == (
        "parameter 'heads' is given, but parameter 'weights' is \"none\", expected \"per_head\", "
        '"mean" or "top_k" beside it; change one of the two'
    )


@pytest.mark.parametrize("form", ["none", "per_head", "mean"])
def test_a_number_of_keys_is_for_one_form_alone(form: str) -> None:
    assert refuse(choose_weights, form, None, 2) == (
        f"parameter 'top_k' is given, but parameter 'weights' is \"{form}\", expected \"top_k\" "
        "beside it; change one of the two"
    )


def test_the_largest_need_a_number_of_keys() -> None:
    assert refuse(choose_weights, "top_k", None, None) == (
        "parameter 'weights' is \"top_k\", but parameter 'top_k' is missing, expected how many "
        "keys of each row; change one of the two"
    )
