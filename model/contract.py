"""Names and sizes that the exporter writes into a model directory and the server reads back.

This module imports neither torch nor onnx, so the server may use it.

Shapes in this project are written with these letters:

    B  batch size            D  d_model, width of a token
    L  query length          H  num_heads
    S  key length            K  d_k = D / H, width of one head
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self

QUERY: Final = "query"
KEY: Final = "key"
VALUE: Final = "value"
MASK: Final = "mask"
KEY_MASK: Final = "key_mask"
BIAS: Final = "bias"
KEY_LENGTHS: Final = "key_lengths"
OUTPUT: Final = "output"
WEIGHTS: Final = "attention_weights"

MANIFEST_FILE: Final = "manifest.json"
VERIFICATION_FILE: Final = "verification.json"
WEIGHTS_FILE: Final = "weights.bin"
CONFIG_FILE: Final = "config.pbtxt"
MANIFEST_FORMAT: Final = 1

MODEL_NAME: Final = re.compile(r"(?!stats\Z)[A-Za-z0-9_][A-Za-z0-9_.-]*")
"""Matches, by `fullmatch`, the names that a model may have: every client can put them into a URL
unescaped, and none hides a path of the protocol, as `/v2/models/stats` is one."""

HIDING_BIAS: Final = -1e30
"""A bias at or below it hides its key, as -inf and float32's lowest number do."""

NO_KEY_SCORE: Final = HIDING_BIAS
"""Bias of every key of a row that sees none: the softmax is then exactly uniform for scores up
to 1e22, where the formula's -1e9 would let the scores through. Rows that see a key hide the
others with -inf. (float32's lowest number is special to onnxruntime's Attention: a zero row.)"""


@dataclass(frozen=True, slots=True, init=False)
class AttentionSpec:
    """Sizes of one attention layer.

    Attributes:
        d_model: D, width of a query token and of an output token.
        num_heads: H.
        kdim: width of a key token; D unless given.
        vdim: width of a value token; D unless given.

    Raises:
        ValueError: if a size is not positive or `num_heads` does not divide `d_model`.
    """

    d_model: int
    num_heads: int
    kdim: int
    vdim: int

    def __init__(
        self, d_model: int, num_heads: int, kdim: int | None = None, vdim: int | None = None
    ) -> None:
        sizes = {
            "d_model": d_model,
            "num_heads": num_heads,
            "kdim": d_model if kdim is None else kdim,
            "vdim": d_model if vdim is None else vdim,
        }
        for name, size in sizes.items():
            if size < 1:
                raise ValueError(f"{name} is {size}, expected a positive number")
            object.__setattr__(self, name, size)
        if d_model % num_heads:
            raise ValueError(f"d_model ({d_model}) must be a multiple of num_heads ({num_heads})")

    @property
    def d_k(self) -> int:
        """K, the width of one head."""
        return self.d_model // self.num_heads

    def to_properties(self) -> dict[str, str]:
        """The sizes as text, the form of ONNX metadata and of the manifest."""
        return {name: str(getattr(self, name)) for name in SPEC_PROPERTIES}

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> Self:
        """Read what `to_properties` wrote; other entries are ignored.

        Raises:
            ValueError: if a size is missing or is not a positive whole number.
        """
        sizes = {}
        for name in SPEC_PROPERTIES:
            text = properties.get(name)
            if not isinstance(text, str) or not (text.isascii() and text.isdigit()):
                raise ValueError(f"{name} is {text!r}, expected a whole number as text")
            sizes[name] = int(text)
        return cls(**sizes)


SPEC_PROPERTIES: Final = ("d_model", "num_heads", "kdim", "vdim")


@dataclass(frozen=True, slots=True)
class GraphSpec:
    """One ONNX file of a model: what goes in and what comes out, in the file's order."""

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    @property
    def file(self) -> str:
        """Name of the file in a version's directory."""
        return f"{self.name}.onnx"


DECOMPOSED: Final = GraphSpec("model", (QUERY, KEY, VALUE, BIAS), (OUTPUT, WEIGHTS))
"""Matrix products and a softmax, opset 18: any provider, any server."""
FUSED_BIAS: Final = GraphSpec("fused_bias", (QUERY, KEY, VALUE, BIAS), (OUTPUT,))
"""The Attention operator with an additive bias."""
FUSED_WEIGHTS: Final = GraphSpec("fused_weights", (QUERY, KEY, VALUE, BIAS), (OUTPUT, WEIGHTS))
"""The same with the weights after the softmax (`qk_matmul_output_mode` 3: not on CUDA)."""
FUSED: Final = GraphSpec("fused", (QUERY, KEY, VALUE, KEY_LENGTHS), (OUTPUT,))
"""The Attention operator with the number of real keys of each item: int64 [B]."""
GRAPHS: Final = (DECOMPOSED, FUSED_BIAS, FUSED_WEIGHTS, FUSED)
