"""Answers of the Open Inference Protocol V2: JSON, with binary data behind it where asked for."""

from collections.abc import Iterable
from typing import Any, Final

import numpy as np
import orjson
from numpy.typing import NDArray

from service.datatypes import name_datatype
from service.errors import InvalidRequestError
from service.inference import Answer
from service.protocol.v2_outputs import WantedOutput
from service.protocol.v2_request import HEADER_LENGTH

JSON_TYPE: Final = "application/json"
BINARY_TYPE: Final = "application/octet-stream"


def encode_answer(
    answer: Answer, request_id: str, outputs: Iterable[WantedOutput]
) -> tuple[bytes, dict[str, str]]:
    """Encode an answer.

    JSON data is flat and in row-major order, each number with the digits that give the same
    float32 back. An output has ``parameters`` only where it is binary: C++ clients look for
    ``binary_data_size`` in any.

    Returns:
        The body and its headers.

    Raises:
        InvalidRequestError: if JSON was asked for and a number is not finite.
    """
    entries, chunks = [], []
    for output in outputs:
        array = np.ascontiguousarray(answer.tensors[output.name])
        entry: dict[str, Any] = {
            "name": output.name,
            "shape": array.shape,
            "datatype": name_datatype(array),
        }
        if output.binary:
            entry["parameters"] = {"binary_data_size": array.nbytes}
            chunks.append(array.data.cast("B"))
        else:
            check_finite(output.name, array)
            entry["data"] = array.ravel()
        entries.append(entry)
    head: dict[str, Any] = {"model_name": answer.model, "model_version": answer.version}
    if request_id:
        head["id"] = request_id
    text = orjson.dumps(head | {"outputs": entries}, option=orjson.OPT_SERIALIZE_NUMPY)
    if not chunks:
        return text, {"Content-Type": JSON_TYPE}
    headers = {"Content-Type": BINARY_TYPE, HEADER_LENGTH: str(len(text))}
    return b"".join([text, *chunks]), headers


def check_finite(name: str, array: NDArray[Any]) -> None:
    """Refuse to write NaN or an infinity as JSON, which has no spelling for them.

    Raises:
        InvalidRequestError: telling to ask for binary data.
    """
    if not np.isfinite(array).all():
        raise InvalidRequestError(
            f"output '{name}' holds NaN or an infinity, which JSON cannot say; ask for binary "
            "data (V2: parameter binary_data; /v1: ?format=npz) or send finite inputs"
        )
