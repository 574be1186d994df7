"""What graphs are verified with: tokens at several sizes, and every form of hiding keys."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from model.contract import (
    BIAS,
    FUSED,
    FUSED_CAUSAL,
    KEY,
    KEY_LENGTHS,
    NO_KEY_SCORE,
    QUERY,
    VALUE,
    AttentionSpec,
    Causal,
    GraphSpec,
)

Array = NDArray[np.float32]
Sizes = tuple[int, int, int]

SIZES: tuple[Sizes, ...] = (
    (1, 1, 1),
    (4, 1, 3),
    (2, 5, 7),
    (3, 16, 9),
    (1, 33, 128),
    (2, 100, 31),
    (1, 130, 256),
)
"""What `SIZE_NAMES` says, in its order; none is the size of the traced example."""

SIZE_NAMES = ("batch_size", "query_length", "key_length")
"""As the record of the verification calls them."""


@dataclass(frozen=True, slots=True)
class Hiding:
    """One way to hide keys, in the words of the tensor contract.

    Attributes:
        name: for the report.
        mask: bool ``[B or 1, H or 1, L, S]``.
        key_mask: bool ``[B, S]``, a non-empty run of real keys first.
        bias: float32 ``[B or 1, H or 1, L, S]``.
        causal: which alignment, if any.
    """

    name: str
    mask: NDArray[np.bool_] | None = None
    key_mask: NDArray[np.bool_] | None = None
    bias: Array | None = None
    causal: Causal = False


def draw_tokens(
    generator: np.random.Generator, spec: AttentionSpec, batch: int, length: int, keys: int
) -> dict[str, Array]:
    """Query, key and value of unit scale, all different."""
    shapes = {
        QUERY: (batch, length, spec.d_model),
        KEY: (batch, keys, spec.kdim),
        VALUE: (batch, keys, spec.vdim),
    }
    return {name: draw(generator, shape) for name, shape in shapes.items()}


def draw(generator: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Standard normal numbers in float32."""
    return generator.standard_normal(shape, np.float32)


def draw_hidings(
    generator: np.random.Generator, spec: AttentionSpec, batch: int, length: int, keys: int
) -> Iterator[Hiding]:
    """The forms of hiding, among them rows that see no key."""
    heads = spec.num_heads
    yield Hiding("none")
    yield Hiding("mask", mask=generator.random((batch, 1, length, keys)) < 0.6)
    yield Hiding("mask_per_head", mask=generator.random((1, heads, length, keys)) < 0.6)
    rows = np.ones((batch, 1, length, keys), bool)
    rows[:, :, generator.integers(length)] = False
    yield Hiding("rows_without_keys", mask=rows)
    lengths = generator.integers(1, keys + 1, batch)
    yield Hiding("key_mask", key_mask=np.arange(keys) < lengths[:, None])
    yield Hiding("bias", bias=draw(generator, (batch, heads, length, keys)))
    yield Hiding("causal_top_left", causal="top_left")
    yield Hiding("causal_bottom_right", causal="bottom_right")


def graph_inputs(
    graph: GraphSpec, tokens: dict[str, Array], hiding: Hiding
) -> dict[str, NDArray[Any]]:
    """The hiding as the graph takes it: key lengths, or one additive bias, or nothing."""
    batch, length, keys = *tokens[QUERY].shape[:2], tokens[KEY].shape[1]
    if graph is FUSED:
        all_keys = np.full(batch, keys, np.int64)
        return {KEY_LENGTHS: all_keys if hiding.key_mask is None else hiding.key_mask.sum(1)}
    if graph is FUSED_CAUSAL:
        return {}
    visible = np.ones((1, 1, length, keys), bool)
    if hiding.mask is not None:
        visible = visible & hiding.mask
    if hiding.key_mask is not None:
        visible = visible & hiding.key_mask[:, None, None]
    if hiding.causal:
        shift = keys - length if hiding.causal == "bottom_right" else 0
        visible = visible & np.tri(length, keys, shift, bool)
    shown = np.float32(0) if hiding.bias is None else hiding.bias
    hidden = np.where(visible.any(-1, keepdims=True), -np.inf, NO_KEY_SCORE).astype(np.float32)
    return {BIAS: np.where(visible, shown, hidden)}
