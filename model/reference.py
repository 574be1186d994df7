"""The formula in numpy float64: the oracle of the tests and of the exporter's verification.

Vaswani et al., "Attention Is All You Need" (2017), section 3.2.
"""

import math
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from model.weights import Weights

Array = NDArray[np.float64]
HIDING_BIAS = -1e30


def attend(
    weights: Weights,
    query: ArrayLike,
    key: ArrayLike | None = None,
    value: ArrayLike | None = None,
    *,
    mask: ArrayLike | None = None,
    key_mask: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    causal: bool | Literal["top_left", "bottom_right"] = False,
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
        key attends to all keys equally.
    """
    key = query if key is None else key
    value = key if value is None else value
    q = split_heads(project(query, weights.W_q, weights.b_q), weights.spec.num_heads)
    k = split_heads(project(key, weights.W_k, weights.b_k), weights.spec.num_heads)
    v = split_heads(project(value, weights.W_v, weights.b_v), weights.spec.num_heads)
    scores = q @ k.swapaxes(-1, -2) / math.sqrt(weights.spec.d_k)  # [B, H, L, S]
    visible = np.ones(scores.shape, bool)
    if mask is not None:
        visible &= with_four_axes(np.asarray(mask)) != 0
    if key_mask is not None:
        visible &= np.asarray(key_mask)[:, None, None, :] != 0
    if causal:
        visible &= causal_visibility(scores.shape[-2], scores.shape[-1], causal)
    if bias is not None:
        added = with_four_axes(np.asarray(bias, np.float64))
        visible &= ~(added <= HIDING_BIAS)
        scores = scores + np.where(added <= HIDING_BIAS, 0, added)
    attention = softmax_of_visible(scores, visible)
    mixed = (attention @ v).swapaxes(1, 2)  # [B, L, H, K]
    joined = mixed.reshape(*mixed.shape[:2], -1)
    return project(joined, weights.fc_out, weights.b_out), attention


def project(tokens: ArrayLike, matrix: ArrayLike, offset: ArrayLike) -> Array:
    """``[B, T, inputs]`` times ``[outputs, inputs]`` plus ``[outputs]``: ``[B, T, outputs]``."""
    x, w, b = (np.asarray(a, np.float64) for a in (tokens, matrix, offset))
    return x @ w.T + b


def split_heads(tokens: Array, num_heads: int) -> Array:
    """``[B, T, D]`` to ``[B, H, T, K]``."""
    batch_size, length, width = tokens.shape
    return tokens.reshape(batch_size, length, num_heads, width // num_heads).swapaxes(1, 2)


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
