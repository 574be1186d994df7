"""Shapes that clients send, bounded before anything is computed from them."""

import math
from collections.abc import Iterable
from typing import Final

from service.errors import InvalidRequestError
from service.protocol.options import show

MAX_AXES: Final = 32  # numpy before 2 has no more, and the contract stops at 4
MAX_AXIS: Final = 2**31 - 1
MAX_ELEMENTS: Final = 2**60  # numpy counts the bytes of an array in 63 bits, even of an empty one


def check_shape(owner: str, sizes: Iterable[object]) -> tuple[int, ...]:
    """Accept the shape of an array that numpy can make.

    Args:
        owner: whose shape it is, for messages.
        sizes: as the client sent them.

    Raises:
        InvalidRequestError: if an axis is not a whole number from 0 to `MAX_AXIS`, or the axes
            or the elements are too many.
    """
    shape: list[int] = []
    for size in sizes:
        # A boolean is an int to Python, and 2.0 a float; neither is a size.
        if type(size) is not int or not 0 <= size <= MAX_AXIS:
            raise InvalidRequestError(
                f"{owner} has {show(size)} in its shape, "
                f"expected whole numbers from 0 to {MAX_AXIS}"
            )
        if len(shape) == MAX_AXES:
            raise InvalidRequestError(f"{owner} has more than {MAX_AXES} axes, expected at most 4")
        shape.append(size)
    if math.prod(size or 1 for size in shape) > MAX_ELEMENTS:
        raise InvalidRequestError(f"{owner} has shape {shape}, which no array can have")
    return tuple(shape)
