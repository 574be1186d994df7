"""Requests of the Open Inference Protocol V2, JSON with or without binary tensor data.

https://github.com/kserve/open-inference-protocol/blob/main/specification/protocol/inference_rest.md
and Triton's extension: `Inference-Header-Content-Length` bytes of JSON, then the tensors that
carry ``binary_data_size``, in the order of the request's ``inputs``.
"""

import re
from dataclasses import dataclass
from typing import Any, Final

from model.contract import WEIGHTS
from service.errors import InvalidRequestError
from service.inference import Inference
from service.protocol.json_text import name_type, parse_object
from service.protocol.options import read_causal, read_weights, show
from service.protocol.v2_inputs import read_inputs
from service.protocol.v2_members import read_parameters
from service.protocol.v2_outputs import WantedOutput, read_outputs

HEADER_LENGTH: Final = "Inference-Header-Content-Length"


@dataclass(frozen=True, slots=True)
class V2Request:
    """A decoded request.

    Attributes:
        id: to be echoed; empty where the client gave none.
        inference: what is asked of the model.
        outputs: in the order of the answer.
    """

    id: str
    inference: Inference
    outputs: tuple[WantedOutput, ...]


def decode_request(body: bytes | memoryview, header_lengths: list[str]) -> V2Request:
    """Decode a body.

    Args:
        body: the whole of it.
        header_lengths: all values of the header `Inference-Header-Content-Length`.

    Returns:
        The request; its arrays may be read-only views into `body`.

    Raises:
        InvalidRequestError: naming the member or tensor, what came and what was expected.
        NotOfferedError: for shared memory and classification.
    """
    view = memoryview(body)
    json_bytes = read_header_length(header_lengths, len(view))
    is_all_json = json_bytes == len(view) and isinstance(body, bytes)
    text = body if is_all_json else bytes(view[:json_bytes])
    root = parse_object(text, what="the request", non_finite=True)
    parameters = read_parameters(root, "the request")
    tensors = read_inputs(root, view[json_bytes:])
    form = read_weights(parameters.get("weights", "per_head"))
    outputs = read_outputs(root, parameters, form)
    wants_weights = any(output.name == WEIGHTS for output in outputs)
    if wants_weights and form == "none":
        raise InvalidRequestError(
            "parameter 'weights' is \"none\", but the output 'attention_weights' is asked for; "
            "leave one of the two out"
        )
    inference = Inference(
        tensors,
        causal=read_causal(parameters.get("causal")),
        weights=form if wants_weights else "none",
    )
    return V2Request(read_id(root), inference, outputs)


def read_header_length(values: list[str], body_bytes: int) -> int:
    """How many bytes of the body are JSON; all of them without the header.

    Raises:
        InvalidRequestError: if the header is not a plain number within the body.
    """
    if not values:
        return body_bytes
    text = values[0]
    if len(values) > 1:
        raise InvalidRequestError(f"header {HEADER_LENGTH} came {len(values)} times, expected once")
    if not re.fullmatch(r"[0-9]{1,18}", text, re.ASCII):
        raise InvalidRequestError(
            f"header {HEADER_LENGTH} is {show(text)}, expected a number of bytes in decimal digits"
        )
    if int(text) == 0:
        raise InvalidRequestError(
            f"header {HEADER_LENGTH} is 0 (a raw binary request), but the model has several "
            "inputs: describe them in JSON"
        )
    if int(text) > body_bytes:
        raise InvalidRequestError(
            f"header {HEADER_LENGTH} is {text}, but the body has {body_bytes} bytes"
        )
    return int(text)


def read_id(root: dict[str, Any]) -> str:
    """The request's id; C++ clients send an empty one for none.

    Raises:
        InvalidRequestError: if it is not a string.
    """
    value = root.get("id")
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InvalidRequestError(f"'id' is {name_type(value)}, expected a string")
    return value
