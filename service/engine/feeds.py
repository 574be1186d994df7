"""What goes into a graph: which graph answers a request, and its inputs by name."""

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from model.contract import (
    BIAS,
    DECOMPOSED,
    FUSED,
    FUSED_BIAS,
    FUSED_CAUSAL,
    FUSED_WEIGHTS,
    KEY,
    KEY_LENGTHS,
    QUERY,
    VALUE,
    GraphSpec,
)
from service.engine.masks import (
    add_hiding,
    build_bias,
    clear_tokens,
    find_unseen,
    find_unseen_apart,
    find_visible,
    tell_bits,
)
from service.engine.session import Provider
from service.engine.signature import Prepared
from service.engine.slices import Slice, Slices

PROVIDER_GRAPHS: Final[dict[Provider, tuple[GraphSpec, ...]]] = {
    "cpu": (FUSED_BIAS, FUSED_WEIGHTS),
    "cuda": (FUSED, FUSED_CAUSAL, FUSED_BIAS, DECOMPOSED),
}
"""Every graph that `choose_graph` may choose."""


def choose_graph(
    provider: Provider, prepared: Prepared, key_lengths: NDArray[np.int64] | None
) -> GraphSpec:
    """The graph that answers a request on a provider.

    On the CPU the Attention operator answers with and without weights: the decomposed graph's
    bits depend on the batch and on the number of threads there. On CUDA the operator cannot
    return weights, and its flash kernel takes no bias: key lengths or its own causal form.
    """
    if prepared.weights.form != "none":
        return FUSED_WEIGHTS if provider == "cpu" else DECOMPOSED
    if provider == "cpu" or key_lengths is None:
        return FUSED_BIAS
    if not prepared.hiding.causal:
        return FUSED
    return FUSED_CAUSAL if is_causal_alone(prepared, key_lengths) else FUSED_BIAS


def is_causal_alone(prepared: Prepared, key_lengths: NDArray[np.int64]) -> bool:
    """Whether a causal mask that is aligned at the first key hides all that is hidden.

    Query i sees the keys up to the i-th. So no query sees one behind the L-th, and if the first L
    of them are real it does not matter which of the others are.
    """
    query_length, key_length = prepared.query.shape[1], prepared.key.shape[1]
    is_aligned = prepared.hiding.causal == "top_left" or query_length == key_length
    return bool(is_aligned and (key_lengths >= query_length).all())


def find_key_lengths(prepared: Prepared) -> NDArray[np.int64] | None:
    """int64 ``[B]``, if a non-empty run of real keys first is all that hides, but for causality.

    A mask that is the same for every head and query says no more than a key_mask; with any other,
    or a bias, there are no key lengths.
    """
    hiding, key_length = prepared.hiding, prepared.key.shape[1]
    if hiding.bias is not None or (hiding.mask is not None and hiding.mask.shape[1:3] != (1, 1)):
        return None
    parts = [hiding.key_mask, None if hiding.mask is None else hiding.mask[:, 0, 0]]
    real = np.ones((prepared.rows, key_length), bool)
    for part in parts:
        real = real if part is None else real & tell_bits(part)
    lengths = real.sum(axis=1, dtype=np.int64)
    is_prefix = (real == (np.arange(key_length) < lengths[:, None])).all()
    return lengths if is_prefix and lengths.all() else None


def build_feeds(
    graph: GraphSpec, prepared: Prepared, key_lengths: NDArray[np.int64] | None
) -> dict[str, NDArray[Any]]:
    """The inputs of `graph` by name."""
    query_length, key_length = prepared.query.shape[1], prepared.key.shape[1]
    if graph is FUSED_CAUSAL:
        beyond = np.arange(key_length) >= query_length
        tokens = clear_unseen(prepared, beyond[None] if beyond.any() else None)
        return {QUERY: prepared.query, **tokens}
    visible = find_visible(prepared.hiding, query_length, key_length)
    unseen = None if visible is None else find_unseen(visible)
    feeds: dict[str, NDArray[Any]] = {QUERY: prepared.query, **clear_unseen(prepared, unseen)}
    if graph is FUSED and key_lengths is not None:
        return feeds | {KEY_LENGTHS: key_lengths}
    return feeds | {BIAS: add_hiding(prepared.hiding.bias, visible, query_length, key_length)}


def build_feeds_apart(
    graph: GraphSpec,
    prepared: Prepared,
    slices: Slices,
    key_lengths: NDArray[np.int64] | None,
    check_wanted: Callable[[], None],
) -> Iterator[tuple[Slice, dict[str, NDArray[Any]]]]:
    """The inputs of `graph` by name, for one slice of the request after the other.

    Each is made when it is asked for: there is never a bias of the whole request.

    Args:
        graph: that runs.
        prepared: the request.
        slices: in which it is computed.
        key_lengths: int64 ``[B]``, where they are all that hides.
        check_wanted: is called before each slice; may raise.
    """
    hiding, key_length = prepared.hiding, prepared.key.shape[1]
    unseen = find_unseen_apart(hiding, key_length, slices, check_wanted)
    tokens = clear_unseen(prepared, unseen)
    for part in slices:
        check_wanted()
        feeds: dict[str, NDArray[Any]] = {
            QUERY: prepared.query[part],
            **{name: array[part.items] for name, array in tokens.items()},
        }
        if graph is FUSED and key_lengths is not None:
            yield part, feeds | {KEY_LENGTHS: key_lengths[part.items]}
        else:
            yield part, feeds | {BIAS: build_bias(hiding, slices.query_length, key_length, part)}


def clear_unseen(
    prepared: Prepared, unseen: NDArray[np.bool_] | None
) -> dict[str, NDArray[np.float32]]:
    """Key and value by name, without the tokens that nobody sees; copied once if they are one.

    Args:
        prepared: the request.
        unseen: bool ``[B or 1, S]``.
    """
    if unseen is None:
        return {KEY: prepared.key, VALUE: prepared.value}
    key = clear_tokens(prepared.key, unseen)
    same = prepared.value is prepared.key
    return {KEY: key, VALUE: key if same else clear_tokens(prepared.value, unseen)}
