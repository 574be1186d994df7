"""Requests of unlike lengths as one run on CUDA: padded, and its answer cut apart again.

What is added never reaches an answer: rows of queries are cut off, and keys are hidden by key
lengths, by -inf in the bias, or by lying behind every query of a causal run.
"""

from collections.abc import Hashable, Iterator, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from model.contract import BIAS, KEY, KEY_LENGTHS, QUERY, VALUE, WEIGHTS, GraphSpec
from service.engine.signature import Prepared

Feeds = dict[str, NDArray[Any]]
Floats = NDArray[np.float32]

KEY_MULTIPLE: Final = 8
"""Key lengths on CUDA: with a bias its memory-efficient kernel takes multiples of 4, and tensor
cores take float16 by eights."""

LEAST_STEP: Final = 64
"""Lengths up to this one share a run, however unlike: so short a sequence keeps no GPU busy."""


def find_step(length: int) -> int:
    """The longest length that shares runs with this one; it is shared by those below it.

    The steps are of 64 tokens, and from 256 tokens on of an eighth to a quarter of the length, so
    that padding adds no more than that.
    """
    step = max(LEAST_STEP, 2 ** ((length - 1).bit_length() - 3))
    return round_up(length, step)


def round_up(length: int, step: int) -> int:
    """The smallest multiple of `step` that is not below `length`."""
    return -(-length // step) * step


def pad_key(graph: GraphSpec, prepared: Prepared) -> Hashable:
    """Requests with equal keys make one run: one graph, equal parameters, lengths that are near."""
    hiding = prepared.hiding
    heads = max(1 if part is None else part.shape[1] for part in (hiding.mask, hiding.bias))
    return (
        graph.name,
        find_step(prepared.query.shape[1]),
        find_step(prepared.key.shape[1]),
        hiding.causal,
        heads,
        prepared.weights,
    )


def join_feeds(feeds: Sequence[Feeds]) -> Feeds:
    """The inputs of one run from those of several, item below item.

    Sequences that attend to themselves stay square: CUDA's flash kernel takes causal runs only if
    L is S, and an array that is query and key crosses to the GPU once only if it stays one.

    Args:
        feeds: of one graph, by name, each as for a run of its own.

    Returns:
        The same names; key lengths are a multiple of 8. What needs no padding is not copied.
    """
    lengths = [(each[QUERY].shape[1], each[KEY].shape[1]) for each in feeds]
    key_length = round_up(max(keys for _, keys in lengths), KEY_MULTIPLE)
    is_square = all(length == keys for length, keys in lengths)
    query_length = key_length if is_square else max(length for length, _ in lengths)
    joined: Feeds = {QUERY: stack_tokens([each[QUERY] for each in feeds], query_length)}
    joined[KEY] = joined[QUERY]
    if any(each[KEY] is not each[QUERY] for each in feeds):
        joined[KEY] = stack_tokens([each[KEY] for each in feeds], key_length)
    joined[VALUE] = joined[KEY]
    if any(each[VALUE] is not each[KEY] for each in feeds):
        joined[VALUE] = stack_tokens([each[VALUE] for each in feeds], key_length)
    if KEY_LENGTHS in feeds[0]:
        joined[KEY_LENGTHS] = np.concatenate([each[KEY_LENGTHS] for each in feeds])
    if BIAS in feeds[0]:
        joined[BIAS] = stack_biases(feeds, query_length, key_length)
    return joined


def stack_tokens(parts: Sequence[Floats], length: int) -> Floats:
    """``[B, T, width]`` below each other, with zeros behind them up to `length`."""
    first = parts[0]
    if len(parts) == 1 and first.shape[1] == length:
        return first
    rows = sum(len(part) for part in parts)
    stacked = np.zeros((rows, length, first.shape[2]), np.float32)
    for items, part in zip(find_items([len(part) for part in parts]), parts, strict=True):
        stacked[items, : part.shape[1]] = part
    return stacked


def stack_biases(feeds: Sequence[Feeds], query_length: int, key_length: int) -> Floats:
    """The biases ``[B or 1, H or 1, L, S]`` below each other; keys that were added are hidden.

    Rows that were added see all keys, so that nothing is divided by 0; they are cut off.
    """
    first = feeds[0][BIAS]
    if len(feeds) == 1 and first.shape[2:] == (query_length, key_length):
        return first
    rows = [len(each[QUERY]) for each in feeds] if len(feeds) > 1 else [len(first)]
    heads = max(each[BIAS].shape[1] for each in feeds)
    stacked = np.zeros((sum(rows), heads, query_length, key_length), np.float32)
    for items, each in zip(find_items(rows), feeds, strict=True):
        length, keys = each[BIAS].shape[2:]
        stacked[items, :, :length, :keys] = each[BIAS]
        stacked[items, :, :length, keys:] = -np.inf
    return stacked


def cut_apart(tensors: Feeds, requests: Sequence[Prepared]) -> list[Feeds]:
    """Take the answer to a padded run apart, without what was added.

    Args:
        tensors: ``[B, L, ...]``, and the weights ``[B, H, L, S]``.
        requests: B rows together.
    """
    parts = []
    for items, request in zip(find_items([r.rows for r in requests]), requests, strict=True):
        length, keys = request.query.shape[1], request.key.shape[1]
        parts.append(
            {
                name: np.ascontiguousarray(
                    array[items, :, :length, :keys] if name == WEIGHTS else array[items, :length]
                )
                for name, array in tensors.items()
            }
        )
    return parts


def find_items(rows: Sequence[int]) -> Iterator[slice]:
    """The places of parts of so many rows each, one behind the other."""
    start = 0
    for count in rows:
        yield slice(start, start + count)
        start += count
