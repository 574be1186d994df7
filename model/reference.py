"""The formula in numpy float64: the oracle of the tests and of the exporter's verification.

Vaswani et al., "Attention Is All You Need" (2017), section 3.2.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from model.contract import HIDING_BIAS, CausalForm
from model.weights import Weights

Array = NDArray[np.float64]
HIDING = np.float64(HIDING_BIAS)  # a number of Python's own would be cast to the bias's type


def attend(
    weights: Weights,
    query: ArrayLike,
    key: ArrayLike | None = None,
    value: ArrayLike | None = None,
    *,
    mask: ArrayLike | None = None,
    key_mask: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    causal: bool | CausalForm = False,
) -> tuple[Array, Array]:
    """Multi-head attention as the tensor contract defines it.

    Args:
        weights: of the layer.
        query: ``[B, L, D]``.
        key: ``[B, S, kdim]``; the query where absent.
        value: ``[B, S, vdim]``; the key where absent.
        mask: ``[B or 1, H or 1, L or 1, S]``, ``[B or 1, L or 1, S]`` or ``[L or 1, S]``;
            0 hides a key from a query.
        key_mask: ``[B, S]``; 0 hides a key from all queries of its item.
        bias: shaped as `mask`; added to the scaled scores; -1e30 and less hides.
        causal: ``True`` or "top_left" lets query i see the keys 0..i; "bottom_right" lets the
            last query see all keys.

    Returns:
        The output ``[B, L, D]`` and the attention weights ``[B, H, L, S]``. A row that sees no
        key attends to all keys equally. What a key holds that no row of its item sees is of no
        account, be it NaN.
    """
    spec = weights.spec
    query = np.asarray(query, np.float64)
    key = query if key is None else np.asarray(key, np.float64)
    value = key if value is None else np.asarray(value, np.float64)
    shape = (query.shape[0], spec.num_heads, query.shape[1], key.shape[1])
    added = None if bias is None else np.broadcast_to(with_four_axes(np.asarray(bias)), shape)
    visible = np.ones(shape, bool)
    visible &= find_visible(mask, key_mask, added)
    if causal:
        visible &= causal_visibility(query.shape[1], key.shape[1], causal)
    counts = find_counting_keys(visible)[:, :, None]
    key, value = np.where(counts, key, 0), np.where(counts, value, 0)
    output = np.tile(np.asarray(weights.b_out, np.float64), (*query.shape[:2], 1))
    attention = np.empty(shape)
    # One at a time, as in float64 a matrix of 4096 x 4096 takes 128 MiB, and its tokens more.
    for head in range(spec.num_heads):
        bias_of_head = None if added is None else added[:, head]
        attention[:, head] = weigh(weights, head, query, key, visible[:, head], bias_of_head)
        output += mix(weights, head, attention[:, head], value)
    return output, attention


def weigh(
    weights: Weights,
    head: int,
    query: Array,
    key: Array,
    visible: NDArray[np.bool_],
    added: NDArray[Any] | None,
) -> Array:
    """The attention weights ``[B, L, S]`` of one head, whose bias and mask have that shape."""
    rows = rows_of(head, weights.spec.d_k)
    q = project(query, weights.W_q[rows], weights.b_q[rows])  # [B, L, K]
    k = project(key, weights.W_k[rows], weights.b_k[rows])
    scores = q @ k.swapaxes(-1, -2) / math.sqrt(weights.spec.d_k)
    if added is not None:
        scores = scores + np.where(added <= HIDING, 0, added)
    return softmax_of_visible(scores, visible)


def mix(weights: Weights, head: int, attention: Array, value: Array) -> Array:
    """What one head adds to the output ``[B, L, D]``: its values, mixed, through its columns.

    ``fc_out`` times the joined heads is the sum of these.
    """
    rows = rows_of(head, weights.spec.d_k)
    v = project(value, weights.W_v[rows], weights.b_v[rows])  # [B, S, K]
    return project(attention @ v, weights.fc_out[:, rows], 0)


def bound_scores(weights: Weights, query: ArrayLike, key: ArrayLike) -> float:
    """What no score of a head exceeds: the norms of its longest query and key, over sqrt(K).

    Args:
        weights: of the layer.
        query: ``[B, L, D]``.
        key: ``[B, S, kdim]``.
    """
    bounds = []
    for head in range(weights.spec.num_heads):
        rows = rows_of(head, weights.spec.d_k)
        q = project(query, weights.W_q[rows], weights.b_q[rows])  # [B, L, K]
        k = project(key, weights.W_k[rows], weights.b_k[rows])
        bounds.append(np.linalg.norm(q, axis=-1).max() * np.linalg.norm(k, axis=-1).max())
    return float(max(bounds)) / math.sqrt(weights.spec.d_k)


def rows_of(head: int, d_k: int) -> slice:
    """Which of the D outputs of the maps of query, key and value are those of a head."""
    return slice(head * d_k, (head + 1) * d_k)


def find_visible(
    mask: ArrayLike | None, key_mask: ArrayLike | None, bias: NDArray[Any] | None
) -> NDArray[np.bool_]:
    """Bool, broadcastable to ``[B, H, L, S]``: what the three tensors let be seen."""
    visible = np.ones((1, 1, 1, 1), bool)
    if mask is not None:
        visible = visible & (with_four_axes(np.asarray(mask)) != 0)
    if key_mask is not None:
        visible = visible & (np.asarray(key_mask)[:, None, None, :] != 0)
    if bias is not None:
        visible = visible & ~(bias <= HIDING)
    return visible


def find_counting_keys(visible: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """``[B, S]``: keys that some row sees; all keys where a row sees none, and attends to all."""
    has_blind_row: NDArray[np.bool_] = (~np.any(visible, axis=3, keepdims=True)).any(axis=(1, 2))
    return np.asarray(np.any(visible, axis=(1, 2)) | has_blind_row)


def project(tokens: ArrayLike, matrix: ArrayLike, offset: ArrayLike) -> Array:
    """``[B, T, inputs]`` times ``[outputs, inputs]`` plus ``[outputs]``: ``[B, T, outputs]``."""
    x, w, b = (np.asarray(a, np.float64) for a in (tokens, matrix, offset))
    return x @ w.T + b


def with_four_axes(array: NDArray[Any]) -> NDArray[Any]:
    """Give a mask or bias the axes ``[B, H, L, S]``: a third axis is the batch, not the head."""
    return array[:, None] if array.ndim == 3 else array[(None,) * (4 - array.ndim)]


def causal_visibility(query_length: int, key_length: int, kind: bool | str) -> NDArray[np.bool_]:
    """``[L, S]``: which keys each query may see."""
    shift = key_length - query_length if kind == "bottom_right" else 0
    return np.arange(key_length) <= np.arange(query_length)[:, None] + shift


def softmax_of_visible(scores: Array, visible: NDArray[np.bool_]) -> Array:
    """Softmax over the visible keys of each row; uniform over all keys where none is visible."""
    sees_any = visible.any(axis=-1, keepdims=True)
    shown = np.where(visible, scores, np.where(sees_any, -np.inf, 0.0))
    with np.errstate(invalid="ignore"):  # a bias of +inf makes its row NaN, as arithmetic does
        exponentials = np.exp(shown - shown.max(axis=-1, keepdims=True))
        weights: Array = exponentials / exponentials.sum(axis=-1, keepdims=True)
    return weights
