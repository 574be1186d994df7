"""Strategies for requests: sizes, everything that hides, options, and the door to ask at."""

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from tests.integration.demo import Arrays, H, draw_tokens
from tests.integration.doors import DOORS

LOWEST: Final = float(np.finfo(np.float32).min)
ADDED: Final = [0.0, 1.5, -2.25, 8.0]
HIDES: Final = [-1e30, -2e30, LOWEST]
CAUSAL: Final = [False, True, "top_left", "bottom_right"]
WEIGHTS: Final = ["none", "per_head", "mean"]


@dataclass(frozen=True)
class AnyRequest:
    """One request, and where to ask it.

    Attributes:
        door: one of `DOORS`.
        tensors: with a batch axis.
        options: causal, and the form of the weights.
    """

    door: str
    tensors: Arrays
    options: dict[str, Any] = field(default_factory=dict)


def list_shapes(batch_size: int, query_length: int, key_length: int) -> list[tuple[int, ...]]:
    """Every shape that a mask or bias may have."""
    sizes = [(batch_size, 1), (H, 1), (query_length, 1)]
    four = [(b, h, q) for b in sizes[0] for h in sizes[1] for q in sizes[2]]
    three = [(b, q) for b in sizes[0] for q in sizes[2]]
    two = [(q,) for q in sizes[2]]
    return sorted({(*shape, key_length) for shape in (*four, *three, *two)})


@st.composite
def draw_sizes(draw: Any) -> tuple[int, int, int]:
    """Batch size, query length and key length, equal or not."""
    batch_size, query_length, key_length = (draw(st.integers(1, 6)) for _ in range(3))
    return batch_size, query_length, key_length


@st.composite
def draw_hiding(draw: Any, sizes: tuple[int, int, int], *, infinite: bool) -> Arrays:
    """Some of mask, key_mask and bias.

    Args:
        draw: of hypothesis.
        sizes: batch size, query length and key length.
        infinite: whether the bias may hold -inf, which JSON has no spelling for.
    """
    shapes = st.sampled_from(list_shapes(*sizes))
    numbers = st.sampled_from([*ADDED, *HIDES, *([-np.inf] if infinite else [])])
    parts = {
        "mask": shapes.flatmap(lambda shape: arrays.arrays(bool, shape)),
        "key_mask": arrays.arrays(bool, (sizes[0], sizes[2])),
        "bias": shapes.flatmap(lambda s: arrays.arrays(np.float32, s, elements=numbers)),
    }
    return dict(draw(st.fixed_dictionaries({}, optional=parts)))


@st.composite
def draw_request(draw: Any) -> AnyRequest:
    """A request that the contract takes, at any door."""
    door: str = draw(st.sampled_from(sorted(DOORS)))
    sizes: tuple[int, int, int] = draw(draw_sizes())
    hiding = draw(draw_hiding(sizes, infinite=door != "v1-json"))
    tokens = draw_tokens(*sizes, seed=draw(st.integers(0, 99)))
    options = {
        "causal": draw(st.sampled_from(CAUSAL)),
        "weights": draw(st.sampled_from(WEIGHTS)),
    }
    return AnyRequest(door, tokens | hiding, options)
