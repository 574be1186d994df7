"""Shapes are bounded before anything is computed from them."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.errors import InvalidRequestError
from service.protocol.shapes import MAX_AXIS, check_shape

SIZES = st.sampled_from([0, 1, 2, 3, 2**10, 2**20, MAX_AXIS]) | st.integers(0, MAX_AXIS)


def refuse(sizes: list[Any]) -> str:
    with pytest.raises(InvalidRequestError) as caught:
        check_shape("input 'query'", sizes)
    return str(caught.value)


@given(st.lists(SIZES, max_size=40), st.sampled_from([1, 2, 4, 8]))
def test_numpy_can_make_every_empty_array_whose_shape_passes(
    sizes: list[int], itemsize: int
) -> None:
    try:
        shape = check_shape("it", sizes)
    except InvalidRequestError:
        return
    assert list(shape) == sizes
    if math.prod(shape) == 0:
        assert np.frombuffer(b"", f"u{itemsize}").reshape(shape).shape == shape


@pytest.mark.parametrize("sizes", [[], [0], [1, 2, 3, 4], [MAX_AXIS], [1] * 32])
def test_usual_shapes_pass(sizes: list[int]) -> None:
    assert check_shape("it", sizes) == tuple(sizes)


@pytest.mark.parametrize(
    ("size", "shown"),
    [
        (-1, "-1"),
        (2**31, "2147483648"),
        (True, "true"),
        (2.0, "2.0"),
        ("2", '"2"'),
        (None, "null"),
        ([2], "a list"),
        (10**100, f"1{'0' * 60}..."),
    ],
)
def test_only_whole_numbers_are_sizes(size: object, shown: str) -> None:
    assert refuse([1, size]) == (
        f"input 'query' has {shown} in its shape, expected whole numbers from 0 to 2147483647"
    )


def test_too_many_axes_are_refused() -> None:
    assert refuse([1] * 33) == "input 'query' has more than 32 axes, expected at most 4"


def test_a_million_axes_cost_no_time() -> None:
    """Their product would have nine million digits."""
    assert refuse([MAX_AXIS] * 10**6) == "input 'query' has more than 32 axes, expected at most 4"


def test_an_empty_array_of_impossible_size_is_refused() -> None:
    assert refuse([0, MAX_AXIS, MAX_AXIS]) == (
        "input 'query' has shape [0, 2147483647, 2147483647], which no array can have"
    )
