"""The inputs that hide or bias keys: mask, key_mask and bias, checked and given four axes."""

from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from model.contract import BIAS, KEY_MASK, MASK
from service.datatypes import check_float32, name_datatype
from service.engine.sizes import Sizes
from service.errors import InvalidRequestError

Number = TypeVar("Number", bound=np.generic)
AXES: Final = {2: (None, None), 3: (slice(None), None), 4: ()}


def check_mask(array: NDArray[Any] | None, sizes: Sizes) -> NDArray[np.bool_] | None:
    """A mask as bool ``[B or 1, H or 1, L or 1, S]``.

    Raises:
        InvalidRequestError: if datatype, an element or the shape does not fit.
    """
    if array is None:
        return None
    return give_four_axes(MASK, to_bool(MASK, array), sizes)


def check_bias(array: NDArray[Any] | None, sizes: Sizes) -> NDArray[np.float32] | None:
    """A bias as float32 ``[B or 1, H or 1, L or 1, S]``.

    Raises:
        InvalidRequestError: if datatype or shape does not fit.
    """
    if array is None:
        return None
    check_float32(BIAS, array)
    return give_four_axes(BIAS, array, sizes)


def check_key_mask(array: NDArray[Any] | None, sizes: Sizes) -> NDArray[np.bool_] | None:
    """A key mask as bool ``[B, S]``.

    Raises:
        InvalidRequestError: if datatype, an element or the shape does not fit.
    """
    if array is None:
        return None
    if array.shape != (sizes.batch_size, sizes.key_length):
        raise InvalidRequestError(
            f"input 'key_mask' has shape {list(array.shape)}, expected "
            f"[{sizes.batch_size}, {sizes.key_length}] ([batch_size, key_length])"
        )
    return to_bool(KEY_MASK, array)


def to_bool(name: str, array: NDArray[Any]) -> NDArray[np.bool_]:
    """True and false from BOOL bytes (any but 0 is true) or from integers 0 and 1.

    BOOL bytes are returned as they are, with whatever stands for true in them: `masks.tell_bits`
    makes them ones where they are looked at, which is not in the event loop.

    Raises:
        InvalidRequestError: if the datatype is another, or an integer is neither 0 nor 1,
            with its position.
    """
    if array.dtype == np.bool_:
        return array
    if array.dtype.kind == "f":
        raise InvalidRequestError(
            f"input '{name}' has datatype {name_datatype(array)}, expected BOOL, or integers 0 "
            "and 1; additive values go into 'bias'"
        )
    if array.dtype.kind not in "iu":
        raise InvalidRequestError(
            f"input '{name}' has datatype {name_datatype(array)}, expected BOOL"
        )
    odd = (array != 0) & (array != 1)
    if odd.any():
        position = [int(i) for i in np.unravel_index(odd.argmax(), odd.shape)]
        raise InvalidRequestError(
            f"input '{name}' holds {array[tuple(position)]} at {position}, expected 0 or 1"
        )
    return array.astype(np.bool_)


def give_four_axes(name: str, array: NDArray[Any], sizes: Sizes) -> NDArray[Any]:
    """A mask or bias with the axes ``[B or 1, H or 1, L or 1, S]``.

    A third axis is the batch: numpy's rule would read ``[B, L, S]`` as ``[H, L, S]``, silently
    where B = H.

    Raises:
        InvalidRequestError: if an axis has another size.
    """
    if array.ndim in AXES:
        wide = add_axes(array)
        fits = wide.shape[3] == sizes.key_length and all(
            got in (1, want) for got, want in zip(wide.shape, sizes, strict=True)
        )
        if fits:
            return wide
    raise InvalidRequestError(
        f"input '{name}' has shape {list(array.shape)}, {explain_shape(array.shape, sizes)}"
    )


def add_axes(array: NDArray[Number]) -> NDArray[Number]:
    """A mask or bias of 2, 3 or 4 axes with four; a third one is the batch."""
    return array[AXES[array.ndim]]


def explain_shape(shape: tuple[int, ...], sizes: Sizes) -> str:
    """What was expected of a mask or bias, with the way out of two common mistakes."""
    batch, heads, length, keys = sizes
    if (
        len(shape) == 3
        and shape[0] == batch * heads
        and shape[1] in (1, length)
        and shape[2] == keys
    ):
        return (
            f"one row for each item and head: reshape it to [{batch}, {heads}, {shape[1]}, "
            f"{shape[2]}]"
        )
    if shape[-2:] == (keys, length) and keys != length:
        return f"its last two axes are [key_length, query_length]: swap them to [{length}, {keys}]"
    return (
        f"expected [{batch} or 1, {heads} or 1, {length} or 1, {keys}], "
        f"[{batch} or 1, {length} or 1, {keys}] or [{length} or 1, {keys}]"
    )
