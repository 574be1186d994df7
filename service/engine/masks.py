"""Every form of hiding as one additive bias, the only form that the graphs take."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from model.contract import NO_KEY_SCORE
from service.inference import Causal

HIDING_BIAS = np.float32(-1e30)
"""A bias at or below it hides its key, as -inf and float32's lowest number do."""


@dataclass(frozen=True, slots=True)
class Hiding:
    """What hides keys from queries in one request.

    Attributes:
        mask: bool ``[B or 1, H or 1, L or 1, S]``, true = visible.
        key_mask: bool ``[B, S]``, true = a real key.
        bias: float32 ``[B or 1, H or 1, L or 1, S]``, added to the scaled scores.
        causal: alignment of the causal mask, if any.
    """

    mask: NDArray[np.bool_] | None = None
    key_mask: NDArray[np.bool_] | None = None
    bias: NDArray[np.float32] | None = None
    causal: Causal = False


def build_bias(hiding: Hiding, query_length: int, key_length: int) -> NDArray[np.float32]:
    """Turn `hiding` into the bias that the graphs add to the scores.

    A key is visible where everything given lets it be. In a row that sees a key, hidden keys
    get -inf, so that their weight is exactly 0; in a row that sees none, all keys get
    `NO_KEY_SCORE`, so that the weights are exactly uniform.

    Args:
        hiding: of the request.
        query_length: L.
        key_length: S.

    Returns:
        ``[B or 1, H or 1, L, S]``; the last two axes are always full, since onnxruntime's
        Attention does not broadcast the query axis.
    """
    visible = find_visible(hiding, query_length, key_length)
    shape = np.broadcast_shapes(
        (1, 1, query_length, key_length),
        (1,) if visible is None else visible.shape,
        (1,) if hiding.bias is None else hiding.bias.shape,
    )
    added = np.zeros(shape, np.float32)
    if hiding.bias is not None:
        np.copyto(added, hiding.bias)
    if visible is not None:
        sees_any = visible.any(axis=-1, keepdims=True)
        np.copyto(added, -np.inf, where=~visible)
        np.copyto(added, NO_KEY_SCORE, where=~sees_any)
    return added


def find_visible(hiding: Hiding, query_length: int, key_length: int) -> NDArray[np.bool_] | None:
    """Bool ``[B or 1, H or 1, L or 1, S]``, true = visible; nothing where nothing hides."""
    parts = []
    if hiding.mask is not None:
        parts.append(hiding.mask)
    if hiding.key_mask is not None:
        parts.append(hiding.key_mask[:, None, None, :])
    if hiding.causal:
        shift = key_length - query_length if hiding.causal == "bottom_right" else 0
        parts.append(np.tri(query_length, key_length, shift, bool)[None, None])
    if hiding.bias is not None:
        hides = hiding.bias <= HIDING_BIAS
        if hides.any():
            parts.append(~hides)
    if not parts:
        return None
    visible = parts[0]
    for part in parts[1:]:
        visible = visible & part
    return visible
