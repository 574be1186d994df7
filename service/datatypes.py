"""The protocol's names of datatypes and numpy's: one table for all doors.

Open Inference Protocol V2, "Tensor Data Types". Data is little-endian on every machine.
"""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from service.errors import InvalidRequestError

DTYPES: Final = {
    "BOOL": np.dtype("?"),
    "UINT8": np.dtype("u1"),
    "UINT16": np.dtype("<u2"),
    "UINT32": np.dtype("<u4"),
    "UINT64": np.dtype("<u8"),
    "INT8": np.dtype("i1"),
    "INT16": np.dtype("<i2"),
    "INT32": np.dtype("<i4"),
    "INT64": np.dtype("<i8"),
    "FP16": np.dtype("<f2"),
    "FP32": np.dtype("<f4"),
    "FP64": np.dtype("<f8"),
}
NAMES: Final = {dtype: name for name, dtype in DTYPES.items()}


def name_datatype(array: NDArray[np.generic]) -> str:
    """The protocol's name of an array's type; numpy's where the protocol has none."""
    return name_dtype(array.dtype)


def name_dtype(dtype: np.dtype[Any]) -> str:
    """The protocol's name of a type; numpy's where the protocol has none."""
    # Another byte order is rare, and asking for it takes 10 microseconds.
    return NAMES.get(dtype) or NAMES.get(dtype.newbyteorder("<"), str(dtype))


def check_float32(name: str, array: NDArray[Any]) -> None:
    """Accept float32 alone.

    Raises:
        InvalidRequestError: naming what came.
    """
    if array.dtype != np.float32:
        raise InvalidRequestError(
            f"input '{name}' has datatype {name_datatype(array)}, expected FP32: convert it "
            "before sending (/v1/attention converts FP16 and FP64 itself)"
        )
