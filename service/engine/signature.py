"""The tensor contract: what a model accepts, checked before anything is computed."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from model.contract import BIAS, KEY, KEY_MASK, MASK, QUERY, VALUE, AttentionSpec
from service.datatypes import check_float32
from service.engine.cost import count_operations
from service.engine.mask_inputs import check_bias, check_key_mask, check_mask
from service.engine.masks import Hiding
from service.engine.sizes import Limits, Sizes, check_limits, check_output
from service.engine.slices import Slices
from service.errors import InvalidRequestError
from service.inference import Inference, WantedWeights
from service.input_names import check_input_names


@dataclass(frozen=True, slots=True)
class Prepared:
    """Checked tensors of one request.

    Attributes:
        query: float32 ``[B, L, D]``.
        key: float32 ``[B, S, kdim]``.
        value: float32 ``[B, S, vdim]``.
        hiding: mask and bias with four axes.
        weights: those that are asked for.
        slices: in which it is computed, one after the other; none where at once.
        output_bytes: memory that the tensors of its answer will take.
        operations: what it costs, see `count_operations`.
    """

    query: NDArray[np.float32]
    key: NDArray[np.float32]
    value: NDArray[np.float32]
    hiding: Hiding
    weights: WantedWeights
    slices: Slices | None = None
    output_bytes: int = 0
    operations: int = 0

    @property
    def rows(self) -> int:
        """B of the request."""
        return len(self.query)

    @property
    def size_bytes(self) -> int:
        """Memory that the tensors hold while the request waits."""
        hiding = self.hiding
        parts = (self.query, self.key, self.value, hiding.mask, hiding.key_mask, hiding.bias)
        # By identity: the query may stand in for the key, and that for the value.
        return sum({id(part): part.nbytes for part in parts if part is not None}.values())


def check_request(spec: AttentionSpec, limits: Limits, request: Inference) -> Prepared:
    """Accept or refuse the tensors of a request, and the heads that it names.

    Raises:
        InvalidRequestError: naming the tensor, what came and what was expected.
        RequestTooLargeError: if a bound is passed, naming the setting.
    """
    check_input_names(request.tensors)
    check_heads(spec, request.weights)
    query, key, value = check_tokens(spec, request.tensors)
    sizes = Sizes(query.shape[0], spec.num_heads, query.shape[1], key.shape[1])
    check_limits(limits, sizes, request.weights)
    output_bytes = check_output(limits, sizes, spec.d_model, request.weights)
    hiding = Hiding(
        mask=check_mask(request.tensors.get(MASK), sizes),
        key_mask=check_key_mask(request.tensors.get(KEY_MASK), sizes),
        bias=check_bias(request.tensors.get(BIAS), sizes),
        causal=spec.causal if request.causal is None else request.causal,
    )
    slices = None
    if request.weights.form == "none":
        slices = Slices.find(sizes, spec.d_model, limits.max_score_bytes)
    operations = count_operations(spec, sizes)
    return Prepared(query, key, value, hiding, request.weights, slices, output_bytes, operations)


def check_heads(spec: AttentionSpec, weights: WantedWeights) -> None:
    """Refuse heads that the model does not have.

    Raises:
        InvalidRequestError: naming the first of them.
    """
    for head in weights.heads or ():
        if head >= spec.num_heads:
            raise InvalidRequestError(
                f"parameter 'heads' holds {head}, expected numbers from 0 to "
                f"{spec.num_heads - 1}: the model has {spec.num_heads} heads"
            )


def check_tokens(
    spec: AttentionSpec, tensors: Mapping[str, NDArray[Any]]
) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]:
    """Query, key and value, the absent ones taken from the others as the contract says.

    Raises:
        InvalidRequestError: if a tensor has the wrong datatype or shape, is empty, or is absent
            where widths do not let another stand in.
    """
    query = check_sequence(QUERY, tensors[QUERY], spec.d_model, "query_length")
    check_absent(spec, tensors)
    key = query
    if KEY in tensors:
        key = check_sequence(KEY, tensors[KEY], spec.kdim, "key_length")
        check_batch_size(KEY, key, query)
    value = key
    if VALUE in tensors:
        value = check_sequence(VALUE, tensors[VALUE], spec.vdim, "key_length")
        check_batch_size(VALUE, value, query)
        if value.shape[1] != key.shape[1]:
            source = KEY if KEY in tensors else "query (which stands in for the absent key)"
            raise InvalidRequestError(
                f"input 'value' has {value.shape[1]} tokens, expected {key.shape[1]} as {source}"
            )
    return query, key, value


def check_absent(spec: AttentionSpec, tensors: Mapping[str, NDArray[Any]]) -> None:
    """Refuse an absent key or value where no other tensor has its width.

    Raises:
        InvalidRequestError: naming the tensor and the two widths.
    """
    if KEY not in tensors and spec.kdim != spec.d_model:
        raise InvalidRequestError(
            f"input 'key' is missing, and the query cannot stand in for it: this model's keys "
            f"are {spec.kdim} wide, its queries {spec.d_model}"
        )
    if VALUE not in tensors and spec.vdim != spec.kdim:
        raise InvalidRequestError(
            f"input 'value' is missing, and the key cannot stand in for it: this model's values "
            f"are {spec.vdim} wide, its keys {spec.kdim}"
        )


def check_sequence(
    name: str, array: NDArray[Any], width: int, length_name: str
) -> NDArray[np.float32]:
    """Accept a non-empty float32 ``[B, length, width]``.

    Raises:
        InvalidRequestError: naming what came and what was expected.
    """
    check_float32(name, array)
    if array.ndim != 3 or array.shape[2] != width:
        raise InvalidRequestError(
            f"input '{name}' has shape {list(array.shape)}, "
            f"expected [batch_size, {length_name}, {width}]"
        )
    if 0 in array.shape:
        raise InvalidRequestError(
            f"input '{name}' has shape {list(array.shape)}, expected no axis of size 0"
        )
    return array


def check_batch_size(name: str, array: NDArray[Any], query: NDArray[Any]) -> None:
    """Refuse a batch unlike the query's: the graphs would mix the items silently.

    Raises:
        InvalidRequestError: naming both.
    """
    if array.shape[0] != query.shape[0]:
        raise InvalidRequestError(
            f"input '{name}' has batch size {array.shape[0]}, expected {query.shape[0]} as query; "
            "tensors are [batch_size, length, width]"
        )
