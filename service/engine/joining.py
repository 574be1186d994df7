"""Several requests as one, and its answer taken apart, with the bits that each has alone."""

from collections.abc import Callable, Hashable, Sequence
from itertools import accumulate
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from service.engine.masks import Hiding
from service.engine.signature import Prepared

Number = TypeVar("Number", bound=np.generic)


def join_key(prepared: Prepared) -> Hashable:
    """Requests with equal keys make one request, item below item.

    Equal keys mean equal lengths: a shorter sequence would have to be padded. They also mean that
    the same inputs are there and broadcast along the same axes, so that the joined request feeds
    the graph tensors of the shapes that each alone would, but for the batch axis.
    """
    hiding = prepared.hiding
    return (
        prepared.query.shape[1:],
        prepared.key.shape[1:],
        prepared.value.shape[1:],
        prepared.key is prepared.query,
        prepared.value is prepared.key,
        None if hiding.mask is None else hiding.mask.shape[1:],
        None if hiding.bias is None else hiding.bias.shape[1:],
        hiding.key_mask is None,
        hiding.causal,
        prepared.weights,
    )


def join(requests: Sequence[Prepared]) -> Prepared:
    """Make one request of several whose keys are equal; its batch holds theirs in order."""
    first = requests[0]
    if len(requests) == 1:
        return first
    query = np.concatenate([request.query for request in requests])
    # What stands in for another tensor is joined once.
    key = query
    if first.key is not first.query:
        key = np.concatenate([request.key for request in requests])
    value = key
    if first.value is not first.key:
        value = np.concatenate([request.value for request in requests])
    return Prepared(query, key, value, join_hidings(requests), first.weights)


def join_hidings(requests: Sequence[Prepared]) -> Hiding:
    """What hides keys in the items of `requests`, all present in each or in none."""

    def join_parts(
        find: Callable[[Hiding], NDArray[Number] | None],
    ) -> NDArray[Number] | None:
        parts = [
            np.broadcast_to(part, (request.rows, *part.shape[1:]))
            for request in requests
            if (part := find(request.hiding)) is not None
        ]
        return np.concatenate(parts) if parts else None

    return Hiding(
        mask=join_parts(lambda hiding: hiding.mask),
        key_mask=join_parts(lambda hiding: hiding.key_mask),
        bias=join_parts(lambda hiding: hiding.bias),
        causal=requests[0].hiding.causal,
    )


def split(
    tensors: dict[str, NDArray[Any]], requests: Sequence[Prepared]
) -> list[dict[str, NDArray[Any]]]:
    """Take the answer to joined requests apart, without a copy.

    Args:
        tensors: ``[B, ...]`` each.
        requests: B rows together.
    """
    if len(requests) == 1:
        return [tensors]
    ends = accumulate(request.rows for request in requests)
    return [
        {name: array[end - request.rows : end] for name, array in tensors.items()}
        for end, request in zip(ends, requests, strict=True)
    ]
