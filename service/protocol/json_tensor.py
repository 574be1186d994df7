"""Lists of JSON numbers to arrays, checked before numpy can convert anything silently.

numpy takes null for NaN, "1.5" for 1.5, true for 1.0 and 1.9 for the integer 1.
"""

import math
from collections.abc import Iterable
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from model.contract import BIAS
from service.datatypes import DTYPES
from service.errors import InvalidRequestError
from service.protocol.json_text import name_type
from service.protocol.options import show
from service.protocol.shapes import MAX_AXES


def flatten_list(name: str, data: list[Any]) -> tuple[tuple[int, ...], list[Any]]:
    """Unpack nested lists.

    Args:
        name: of the tensor, for messages.
        data: a list of scalars, or of lists of one length, and so on.

    Returns:
        The shape and the scalars in row-major order.

    Raises:
        InvalidRequestError: if lists beside each other differ in length, or stand beside scalars.
    """
    shape = [len(data)]
    level: list[Any] = data
    while level and isinstance(level[0], list):
        lengths = set(map(len, level)) if set(map(type, level)) == {list} else set()
        if not lengths:
            raise InvalidRequestError(
                f"input '{name}' has numbers beside lists, expected lists of one depth"
            )
        if len(lengths) > 1:
            raise InvalidRequestError(
                f"input '{name}' has lists of {min(lengths)} and of {max(lengths)} elements "
                f"beside each other at depth {len(shape)}, expected one length"
            )
        if len(shape) == MAX_AXES:
            raise InvalidRequestError(
                f"input '{name}' is nested more than {MAX_AXES} lists deep, expected at most 4"
            )
        shape.append(lengths.pop())
        level = list(chain.from_iterable(level))
    return tuple(shape), level


def convert_scalars(name: str, scalars: list[Any], datatype: str) -> NDArray[Any]:
    """Convert JSON scalars to a flat array.

    Args:
        name: of the tensor, for messages.
        scalars: all of the kind that `datatype` needs.
        datatype: the protocol's name, one of `DTYPES`.

    Raises:
        InvalidRequestError: if a scalar is of another kind or out of range, with its position.
    """
    if datatype == "FP16":
        raise InvalidRequestError(
            f"input '{name}' has datatype FP16, which has no JSON form; send binary data, or FP32"
        )
    dtype = DTYPES[datatype]
    if dtype.kind == "b":
        return convert_booleans(name, scalars)
    if dtype.kind in "iu":
        return convert_integers(name, scalars, datatype)
    return convert_floats(name, scalars, datatype)


def convert_booleans(name: str, scalars: list[Any]) -> NDArray[np.bool_]:
    """True, false, 1 and 0.

    Raises:
        InvalidRequestError: for anything else.
    """
    check_types(name, scalars, {bool, int}, "true, false, 1 or 0")
    wrong = [value for value in set(scalars) if value not in (0, 1)]
    if wrong:
        raise InvalidRequestError(
            f"input '{name}' holds {show(wrong[0])} at element {scalars.index(wrong[0])}, "
            "expected true, false, 1 or 0"
        )
    return np.array(scalars, np.bool_)


def convert_integers(name: str, scalars: list[Any], datatype: str) -> NDArray[Any]:
    """Whole numbers within the range of `datatype`.

    Raises:
        InvalidRequestError: for anything else.
    """
    check_types(name, scalars, {int}, f"whole numbers for {datatype}")
    limits: np.iinfo[Any] = np.iinfo(DTYPES[datatype].type)
    low, high = min(scalars, default=0), max(scalars, default=0)
    if low < limits.min or high > limits.max:
        outlier = low if low < limits.min else high
        raise InvalidRequestError(
            f"input '{name}' holds {show(outlier)} at element {scalars.index(outlier)}, which "
            f"{datatype} cannot hold: expected {limits.min} to {limits.max}"
        )
    return np.array(scalars, DTYPES[datatype])


def convert_floats(name: str, scalars: list[Any], datatype: str) -> NDArray[Any]:
    """Numbers within the range of `datatype`; NaN and infinities as the parser took them.

    Raises:
        InvalidRequestError: for anything else, or a finite number that would become infinite.
    """
    check_types(name, scalars, {float, int}, f"numbers for {datatype}")
    try:
        wide = np.array(scalars, np.float64)
    except OverflowError:
        wide = np.array([to_float(value) for value in scalars], np.float64)
        refuse_overflow(name, scalars, wide, datatype)
    with np.errstate(over="ignore"):
        array = wide.astype(DTYPES[datatype])
    if np.isinf(array).any():
        refuse_overflow(name, scalars, array, datatype)
    return array


def to_float(value: float) -> float:
    """A number as float; an integer beyond float64 becomes infinite."""
    try:
        return float(value)
    except OverflowError:
        return math.inf


def refuse_overflow(name: str, scalars: list[Any], array: NDArray[Any], datatype: str) -> None:
    """Refuse a finite number that became infinite.

    Raises:
        InvalidRequestError: with the first such number.
    """
    for element in np.flatnonzero(np.isinf(array)):
        if name == BIAS and array[element] < 0:
            continue  # a bias below all of FP32 hides, as -inf does
        if not isinstance(scalars[element], float) or math.isfinite(scalars[element]):
            text = str(scalars[element])
            shown = text if len(text) <= 32 else f"a number of {len(text)} digits"
            raise InvalidRequestError(
                f"input '{name}' holds {shown} at element {element}, which {datatype} cannot hold"
            )


def check_types(name: str, scalars: Iterable[Any], allowed: set[type], expected: str) -> None:
    """Refuse scalars of other Python types.

    Raises:
        InvalidRequestError: naming the first such scalar's type and position.
    """
    if set(map(type, scalars)) <= allowed:
        return
    for element, value in enumerate(scalars):
        if type(value) not in allowed:
            came = f"the number {value}" if type(value) is float else name_type(value)
            raise InvalidRequestError(
                f"input '{name}' holds {came} at element {element}, expected {expected}"
            )
