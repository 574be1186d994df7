"""Answers of /v1/attention, in the form that the client asked for."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from service.inference import Answer
from service.protocol.attention_request import AttentionRequest
from service.protocol.forms import MEDIA_TYPES, Form
from service.protocol.json_writer import write_json
from service.protocol.npz import encode_npz
from service.protocol.safetensors_body import encode_safetensors
from service.protocol.v2_answer import check_finite


def encode_answer(
    answer: Answer, form: Form, asked: AttentionRequest
) -> tuple[bytes, dict[str, str]]:
    """Encode an answer.

    Args:
        answer: of the model, with a batch axis.
        form: of the body.
        asked: the request; without a batch axis in it, the answer has none.

    Returns:
        The body and its headers.

    Raises:
        InvalidRequestError: if JSON was asked for and a number is not finite.
    """
    arrays = answer.tensors if asked.batched else {n: a[0] for n, a in answer.tensors.items()}
    headers = {"Content-Type": MEDIA_TYPES[form]}
    if asked.converted:
        headers["Limelight-Converted"] = ", ".join(f"{n} {t}" for n, t in asked.converted.items())
    notes = {
        "model_name": answer.model,
        "model_version": answer.version,
        "graph": answer.graph,
    }
    if form == "json":
        return encode_json(arrays, {**notes, "converted": asked.converted}), headers
    if form == "npz":
        return encode_npz(arrays), headers
    return encode_safetensors(arrays, notes), headers


def encode_json(arrays: dict[str, NDArray[Any]], notes: dict[str, Any]) -> bytes:
    """Nested lists by tensor name, after the notes.

    Raises:
        InvalidRequestError: if a number is not finite.
    """
    for name, array in arrays.items():
        check_finite(name, array)
    contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    return write_json({**notes, **contiguous})
