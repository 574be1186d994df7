"""Every form of hiding as one additive bias, the only form that the graphs take."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from model.contract import HIDING_BIAS, NO_KEY_SCORE
from service.inference import Causal


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
    return add_hiding(hiding.bias, visible, query_length, key_length)


def add_hiding(
    bias: NDArray[np.float32] | None,
    visible: NDArray[np.bool_] | None,
    query_length: int,
    key_length: int,
) -> NDArray[np.float32]:
    """The bias of `build_bias` for keys whose visibility is known."""
    shape = np.broadcast_shapes(
        (1, 1, query_length, key_length),
        (1,) if visible is None else visible.shape,
        (1,) if bias is None else bias.shape,
    )
    added = np.zeros(shape, np.float32)
    if bias is not None:
        np.copyto(added, bias)
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


def find_unseen(visible: NDArray[np.bool_]) -> NDArray[np.bool_] | None:
    """Keys that no query of their item sees, in any head; nothing where there are none.

    In an item with a row that sees no key there are none either: that row attends to them all.

    Args:
        visible: bool ``[B or 1, H or 1, L or 1, S]``.

    Returns:
        Bool ``[B or 1, S]``.
    """
    has_blind_row: NDArray[np.bool_] = (~np.any(visible, axis=3, keepdims=True)).any(axis=(1, 2))
    unseen: NDArray[np.bool_] = ~(np.any(visible, axis=(1, 2)) | has_blind_row)
    return unseen if unseen.any() else None


def clear_tokens(
    tokens: NDArray[np.float32], unseen: NDArray[np.bool_] | None
) -> NDArray[np.float32]:
    """Set tokens that nobody sees to 0.

    Their weight is 0, but 0 times infinity is NaN, and so is an infinite score less infinity:
    what a client leaves in its padding must not reach the answer.

    Args:
        tokens: ``[B, S, any width]``.
        unseen: bool ``[B or 1, S]``.
    """
    if unseen is None:
        return tokens
    return np.where(unseen[:, :, None], np.float32(0), tokens)
