"""What /v1 converts for its clients: other float types to FP32, masks of 0 and 1 to BOOL."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from model.contract import BIAS
from service.datatypes import name_datatype
from service.errors import InvalidRequestError


def convert_floats(name: str, array: NDArray[Any], converted: dict[str, str]) -> NDArray[Any]:
    """FP64 and FP16 as FP32; all else as it came.

    Args:
        name: of the tensor.
        array: of any type.
        converted: gets the datatype that came, if it was converted.

    Raises:
        InvalidRequestError: if a finite number is beyond FP32, with its position.
    """
    if array.dtype.kind != "f" or array.dtype == np.float32:
        return array
    with np.errstate(over="ignore"):
        narrow = array.astype(np.float32)
    lost = np.isinf(narrow) & np.isfinite(array)
    if name == BIAS:
        lost &= array > 0  # a bias below all of FP32 hides, as -inf does
    if lost.any():
        position = [int(i) for i in np.unravel_index(lost.argmax(), lost.shape)]
        raise InvalidRequestError(
            f"input '{name}' holds {array[tuple(position)]} at {position}, which FP32 cannot hold"
        )
    converted[name] = name_datatype(array)
    return narrow


def convert_mask(name: str, array: NDArray[Any]) -> NDArray[Any]:
    """A float mask that holds only 0 and 1 (``torch.tril(torch.ones(…))``) as bool.

    Raises:
        InvalidRequestError: if it holds another number, with its position.
    """
    if array.dtype.kind != "f":
        return array
    odd = (array != 0) & (array != 1)
    if odd.any():
        position = [int(i) for i in np.unravel_index(odd.argmax(), odd.shape)]
        raise InvalidRequestError(
            f"input '{name}' holds {array[tuple(position)]} at {position}, expected 0 or 1; "
            "additive values go into 'bias'"
        )
    return array.astype(np.bool_)
