"""Requests of /v1/attention: nested JSON, npz or safetensors, with or without a batch axis."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from model.contract import BIAS, KEY, KEY_MASK, MASK, QUERY, VALUE
from service.errors import InvalidRequestError
from service.inference import Inference
from service.input_names import check_input_names
from service.protocol.conversions import convert_floats, convert_mask
from service.protocol.forms import Form
from service.protocol.json_depth import DEFAULT_DEPTH
from service.protocol.json_numbers import OddListError
from service.protocol.json_outline import LongList, read_object
from service.protocol.json_tensor import check_types, convert_scalars, flatten_list
from service.protocol.json_text import name_type
from service.protocol.npz import decode_npz
from service.protocol.options import read_causal, show
from service.protocol.query_string import OPTIONS
from service.protocol.safetensors_body import decode_safetensors
from service.protocol.weights_options import (
    choose_weights,
    read_form,
    read_heads_list,
    read_top_k,
)

MASKS: Final = (MASK, KEY_MASK)
READERS: Final[dict[str, Callable[[object], object]]] = {
    "causal": read_causal,
    "weights": read_form,
    "heads": read_heads_list,
    "top_k": read_top_k,
}
UNBATCHED_RANKS: Final = {
    QUERY: (2,),
    KEY: (2,),
    VALUE: (2,),
    MASK: (2, 3),
    BIAS: (2, 3),
    KEY_MASK: (1,),
}


@dataclass(frozen=True, slots=True)
class AttentionRequest:
    """A decoded request.

    Attributes:
        inference: what is asked of the model, with a batch axis.
        converted: the datatypes of tensors that were converted, by name.
        batched: whether the client's tensors have a batch axis.
        model: name of the model, if the client named one.
        version: of the model, if the client named one.
    """

    inference: Inference
    converted: dict[str, str]
    batched: bool
    model: str | None
    version: str | None


def decode_request(
    body: bytes | memoryview,
    form: Form,
    query_options: Mapping[str, Any],
    max_bytes: int,
    max_depth: int = DEFAULT_DEPTH,
) -> AttentionRequest:
    """Decode a body.

    Args:
        body: the whole of it.
        form: what the bytes are.
        query_options: of the query string; JSON may hold them in the body instead.
        max_bytes: bound of an npz archive after inflating.
        max_depth: of lists and objects of JSON in each other.

    Raises:
        InvalidRequestError: naming the tensor or option, what came and what was expected.
        RequestTooLargeError: if an npz archive inflates to more than `max_bytes`.
    """
    options = dict(query_options)
    if form == "json":
        read = partial(read_members, query_options=query_options)
        tensors, options = read_object(
            bytes(body), read, what="the request", non_finite=False, max_depth=max_depth
        )
    elif form == "npz":
        tensors = decode_npz(body, max_bytes)
    else:
        tensors = decode_safetensors(body)
    check_input_names(tensors)
    converted: dict[str, str] = {}
    tensors = {
        name: convert_mask(name, array) if name in MASKS else convert_floats(name, array, converted)
        for name, array in tensors.items()
    }
    batched = tensors[QUERY].ndim != 2
    inference = Inference(
        tensors if batched else add_batch_axis(tensors),
        causal=options.get("causal"),
        weights=choose_weights(
            options.get("weights", "none"), options.get("heads"), options.get("top_k")
        ),
    )
    return AttentionRequest(
        inference, converted, batched, options.get("model"), options.get("version")
    )


def read_members(
    root: dict[str, Any], query_options: Mapping[str, Any]
) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """The tensors of a JSON object, and the options of it and of the query string.

    Raises:
        InvalidRequestError: if a member is unknown, malformed, or given in the query string too.
        OddListError: if a long list may be.
    """
    options = dict(query_options)
    tensors: dict[str, NDArray[Any]] = {}
    check_input_names(name for name in root if name not in OPTIONS)
    for name, value in root.items():
        if value is None:
            continue
        if name in OPTIONS:
            if name in options:
                raise InvalidRequestError(
                    f"option '{name}' is in the query string and in the body, expected once"
                )
            options[name] = READERS[name](value) if name in READERS else read_text(name, value)
        else:
            tensors[name] = read_nested(name, value)
    return tensors, options


def read_text(name: str, value: object) -> str:
    """An option that is a string.

    Raises:
        InvalidRequestError: if it is not.
    """
    if not isinstance(value, str):
        raise InvalidRequestError(f"option '{name}' is {show(value)}, expected a string")
    return value


def read_nested(name: str, value: object) -> NDArray[Any]:
    """A tensor whose nesting is its shape: float32, or bool for masks.

    Raises:
        InvalidRequestError: if it is not a list, is ragged, or holds anything else.
        OddListError: if that may be so of a long list.
    """
    if isinstance(value, LongList):
        return read_long(name, value)
    if not isinstance(value, list):
        raise InvalidRequestError(f"input '{name}' is {name_type(value)}, expected nested lists")
    shape, scalars = flatten_list(name, value)
    if name not in MASKS:
        return convert_scalars(name, scalars, "FP32").reshape(shape)
    if set(map(type, scalars)) <= {bool, int}:
        return convert_scalars(name, scalars, "BOOL").reshape(shape)
    check_types(name, scalars, {bool, int, float}, "true, false, 0 or 1")
    return np.array(scalars, np.float64).reshape(shape)


def read_long(name: str, value: LongList) -> NDArray[Any]:
    """The same of a long list; a mask of fractions is left to the conversions.

    Raises:
        OddListError: if it is not what `read_nested` takes.
    """
    if name not in MASKS:
        return value.read(name, "FP32")
    try:
        return value.read(name, "BOOL")
    except OddListError:
        return value.read(name, "FP64")


def add_batch_axis(tensors: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Give tensors without a batch axis one of size 1.

    A mask or bias ``[L or 1, S]`` has no batch axis anyway; ``[H or 1, L or 1, S]`` gets one.

    Raises:
        InvalidRequestError: if the query has no batch axis, but another tensor has.
    """
    batched = {}
    for name, array in tensors.items():
        if array.ndim not in UNBATCHED_RANKS[name]:
            raise InvalidRequestError(
                f"input '{name}' has shape {list(array.shape)} beside a query without a batch "
                "axis; leave the batch axis out of all tensors, or of none"
            )
        keeps = name in (MASK, BIAS) and array.ndim == 2
        batched[name] = array if keeps else array[None]
    return batched
