"""Requests of the Open Inference Protocol V2, JSON with or without binary tensor data.

https://github.com/kserve/open-inference-protocol/blob/main/specification/protocol/inference_rest.md
and Triton's extension: `Inference-Header-Content-Length` bytes of JSON, then the tensors that
carry ``binary_data_size``, in the order of the request's ``inputs``.
"""

import re
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from model.contract import OUTPUT
from service.errors import InvalidRequestError
from service.inference import NO_WEIGHTS, Inference, WantedWeights
from service.protocol.json_depth import DEFAULT_DEPTH
from service.protocol.json_outline import read_object
from service.protocol.json_text import name_type
from service.protocol.options import read_causal, show
from service.protocol.v2_inputs import read_inputs
from service.protocol.v2_layout import LayoutMemory, Layouts, V2Request
from service.protocol.v2_members import read_parameters
from service.protocol.v2_outputs import read_outputs
from service.protocol.v2_schedule import read_schedule
from service.protocol.weights_options import (
    choose_weights,
    read_form,
    read_heads_text,
    read_top_k,
)

HEADER_LENGTH: Final = "Inference-Header-Content-Length"
LENGTH: Final = re.compile(r"[0-9]{1,18}", re.ASCII)


def decode_request(
    body: bytes | bytearray | memoryview,
    header_lengths: list[str],
    max_depth: int = DEFAULT_DEPTH,
    layouts: Layouts | None = None,
) -> V2Request:
    """Decode a body.

    Args:
        body: the whole of it.
        header_lengths: all values of the header `Inference-Header-Content-Length`.
        max_depth: of lists and objects in each other.
        layouts: of requests that came before.

    Returns:
        The request; its arrays may be read-only views into `body`.

    Raises:
        InvalidRequestError: naming the member or tensor, what came and what was expected.
        NotOfferedError: for shared memory, classification and sequences.
    """
    view = memoryview(body)
    json_bytes = read_header_length(header_lengths, len(view))
    # A copy, unless the body is one already.
    text = bytes(body if json_bytes == len(view) else view[:json_bytes])
    binary = view[json_bytes:]
    memory = None if layouts is None else LayoutMemory(layouts, binary)
    if memory is not None and binary and (known := memory.recall(text, [])):
        return known
    request = read_object(
        text,
        partial(build_request, binary=binary),
        what="the request",
        non_finite=True,
        max_depth=max_depth,
        memory=memory,
    )
    if memory is not None and binary:
        memory.keep(text, [], request)
    return request


def build_request(root: dict[str, Any], binary: memoryview) -> V2Request:
    """The request that a JSON object describes; see `decode_request`.

    Args:
        root: the object.
        binary: what follows it in the body.

    Raises:
        InvalidRequestError: naming the member or tensor, what came and what was expected.
        NotOfferedError: for shared memory, classification and sequences.
    """
    parameters = read_parameters(root, "the request")
    tensors = read_inputs(root, binary)
    weights = read_weights(parameters)
    schedule = read_schedule(parameters)
    outputs = read_outputs(root, parameters, weights.form)
    wants_weights = any(output.name != OUTPUT for output in outputs)
    inference = Inference(
        tensors,
        causal=read_causal(parameters.get("causal")),
        weights=weights if wants_weights else NO_WEIGHTS,
    )
    is_text = not all(output.binary for output in outputs)
    return V2Request(read_id(root), inference, outputs, schedule, is_text)


def read_weights(parameters: Mapping[str, object]) -> WantedWeights:
    """The weights that the parameters ask for; those of every head unless they say else.

    Raises:
        InvalidRequestError: if one is malformed, or they do not fit each other.
    """
    form = read_form(parameters.get("weights", "per_head"))
    heads = read_heads_text(parameters["heads"]) if "heads" in parameters else None
    top_k = read_top_k(parameters["top_k"]) if "top_k" in parameters else None
    return choose_weights(form, heads, top_k)


def read_header_length(values: list[str], body_bytes: int) -> int:
    """How many bytes of the body are JSON; all of them without the header.

    Raises:
        InvalidRequestError: if the header is not a plain number within the body.
    """
    if not values:
        return body_bytes
    text = values[0].strip(" \t")
    if len(values) > 1:
        raise InvalidRequestError(f"header {HEADER_LENGTH} came {len(values)} times, expected once")
    if not LENGTH.fullmatch(text):
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
