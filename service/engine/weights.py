"""The weights of a run made into those that a request asked for."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from model.contract import TOP_K_KEYS, TOP_K_WEIGHTS, WEIGHTS
from service.inference import WantedWeights

Floats = NDArray[np.float32]
# Rows are ranked so many numbers at a time, in 1 MiB of memory: eight times as many take 1.6 times
# as long, for want of cache.
BLOCK_NUMBERS: Final = 65_536
KEY_BITS: Final = np.uint64(32)
KEY_MASK: Final = np.uint64(0xFFFF_FFFF)
MAGNITUDE: Final = np.uint32(0x7FFF_FFFF)
INFINITY_BITS: Final = np.uint32(0x7F80_0000)


def reduce_weights(
    tensors: dict[str, NDArray[Any]], wanted: WantedWeights
) -> dict[str, NDArray[Any]]:
    """The tensors of an answer, with the weights as they were asked for.

    Args:
        tensors: of the graph; ``attention_weights`` ``[B, H, L, S]``, unless none are wanted.
        wanted: form, heads and number of keys.
    """
    if wanted.form == "none":
        return tensors
    others = {name: array for name, array in tensors.items() if name != WEIGHTS}
    weights = tensors[WEIGHTS]
    if wanted.form == "top_k":
        values, keys = find_top(weights, wanted.heads, wanted.top_k or weights.shape[-1])
        return others | {TOP_K_WEIGHTS: values, TOP_K_KEYS: keys}
    if wanted.form == "mean":
        return others | {WEIGHTS: average_heads(weights, wanted.heads)}
    # A copy, as a view would keep the weights of all heads in memory.
    chosen = weights if wanted.heads is None else np.take(weights, wanted.heads, axis=1)
    return others | {WEIGHTS: chosen}


def average_heads(weights: Floats, heads: tuple[int, ...] | None) -> Floats:
    """The weights ``[B, H, L, S]`` as their mean ``[B, L, S]`` over some heads, or all.

    Head by head in the order of their numbers: neither the order in which they were asked for nor
    a size, by which numpy chooses how it adds up an axis, changes a bit.
    """
    first, *others = sorted(heads or range(weights.shape[1]))
    mean = weights[:, first].copy()
    for head in others:
        mean += weights[:, head]
    mean /= 1 + len(others)
    return mean


def find_top(
    weights: Floats, heads: tuple[int, ...] | None, count: int
) -> tuple[Floats, NDArray[np.int32]]:
    """The largest weights of each row, and the numbers of their keys.

    Args:
        weights: ``[B, H, L, S]``.
        heads: numbers of those wanted, in the order of the answer; all of them where absent.
        count: of keys, if there are so many.

    Returns:
        Weights and keys, both ``[B, heads, L, min(count, S)]``, in descending order, equal weights
        in that of their keys. The weights of a row that is NaN are equal.
    """
    batch, num_heads, length, key_length = weights.shape
    numbers = np.arange(batch * num_heads * length).reshape(batch, num_heads, length)
    numbers = numbers if heads is None else numbers[:, heads]
    count = min(count, key_length)
    rows, places = weights.reshape(-1, key_length), numbers.reshape(-1)
    values = np.empty((len(places), count), np.float32)
    keys = np.empty((len(places), count), np.int32)
    step = max(1, BLOCK_NUMBERS // key_length)
    for start in range(0, len(places), step):
        block = slice(start, start + step)
        some = rows[places[block]]
        keys[block] = rank_keys(some, count)
        values[block] = np.take_along_axis(some, keys[block], axis=-1)
    shape = (*numbers.shape, count)
    return values.reshape(shape), keys.reshape(shape)


def rank_keys(rows: Floats, count: int) -> NDArray[np.int32]:
    """The keys ``[R, count]`` of the largest weights of rows ``[R, S]``.

    A weight and its key make one whole number, so that all numbers of a row differ, and sorting
    them, which numpy has vector instructions for, settles ties too: it takes less than half as
    long as `argpartition`, which settles none. IEEE 754: the bits of floats that are not negative
    are in the order of the floats, and those of NaN come after all.
    """
    key_length = rows.shape[-1]
    bits = rows.view(np.uint32)
    if bits.max() > INFINITY_BITS:  # one NaN is as large as another, whatever its sign
        bits = np.minimum(bits & MAGNITUDE, INFINITY_BITS + np.uint32(1))
    ranks = bits.astype(np.uint64)
    ranks <<= KEY_BITS
    ranks |= np.arange(key_length - 1, -1, -1, dtype=np.uint64)  # the lower key is the greater one
    if count < key_length:
        ranks.partition(key_length - count, axis=-1)
    best = np.sort(ranks[:, key_length - count :], axis=-1)[:, ::-1]
    keys: NDArray[np.int32] = (key_length - 1 - (best & KEY_MASK)).astype(np.int32)
    return keys
