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
from typing import Any, Final, Literal, Self

QUERY: Final = "query"
KEY: Final = "key"
VALUE: Final = "value"
MASK: Final = "mask"
KEY_MASK: Final = "key_mask"
BIAS: Final = "bias"
KEY_LENGTHS: Final = "key_lengths"
OUTPUT: Final = "output"
WEIGHTS: Final = "attention_weights"
TOP_K_WEIGHTS: Final = "top_k_weights"
TOP_K_KEYS: Final = "top_k_keys"

MANIFEST_FILE: Final = "manifest.json"
VERIFICATION_FILE: Final = "verification.json"
WEIGHTS_FILE: Final = "weights.bin"
CONFIG_FILE: Final = "config.pbtxt"
EXAMPLE_FILE: Final = "example.safetensors"
MANIFEST_FORMAT: Final = 1

MODEL_NAME: Final = re.compile(r"(?!stats\Z)[A-Za-z0-9_][A-Za-z0-9_.-]*")
"""Matches, by `fullmatch`, the names that a model may have: every client can put them into a URL
unescaped, and none hides a path of the protocol, as `/v2/models/stats` is one."""

HIDING_BIAS: Final = -1e30
"""A bias at or below it hides its key, as -inf and float32's lowest number do."""

NO_KEY_SCORE: Final = -9e29
"""Bias of every key of a row that sees none: the softmax is then exactly uniform for scores up
to 1e22, where the formula's -1e9 would let the scores through. Rows that see a key hide the
others with -inf. Two numbers are special to onnxruntime's Attention and give a row of zeros: on the
CPU float32's lowest, and in CUDA's memory-efficient kernel -1e30 and all below it (the sentinel of
`LaunchZeroFullyMaskedRows`, attention_mask_impl.cu)."""


CausalForm = Literal["top_left", "bottom_right"]
"""How query i and the keys it may see are aligned where L and S differ: at the first key, or at
the last."""
Causal = Literal[False] | CausalForm
Precision = Literal["fp32", "fp16"]
"""In what a model stores its weights and multiplies by them. Inputs and outputs are FP32 always."""


@dataclass(frozen=True, slots=True, init=False)
class AttentionSpec:
    """Sizes of one attention layer, whether it hides later keys by itself, and its precision.

    Attributes:
        d_model: D, width of a query token and of an output token.
        num_heads: H.
        kdim: width of a key token; D unless given.
        vdim: width of a value token; D unless given.
        causal: how later keys are hidden from a query where a request does not say.
        precision: of the exported weights.

    Raises:
        ValueError: if a size is not positive, `num_heads` does not divide `d_model`, or `causal`
            or `precision` is unknown.
    """

    d_model: int
    num_heads: int
    kdim: int
    vdim: int
    causal: Causal
    precision: Precision

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        kdim: int | None = None,
        vdim: int | None = None,
        *,
        causal: Causal = False,
        precision: Precision = "fp32",
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
        if causal is not False and causal not in CAUSAL_FORMS:
            raise ValueError(f"causal is {causal!r}, expected False, 'top_left' or 'bottom_right'")
        if precision not in PRECISIONS:
            raise ValueError(f"precision is {precision!r}, expected 'fp32' or 'fp16'")
        object.__setattr__(self, "causal", causal)
        object.__setattr__(self, "precision", precision)

    @property
    def d_k(self) -> int:
        """K, the width of one head."""
        return self.d_model // self.num_heads

    def to_properties(self) -> dict[str, str]:
        """The attributes as text, the form of ONNX metadata and of the manifest.

        ``causal`` is left out where it is not set, and ``precision`` where it is fp32.
        """
        sizes = {name: str(getattr(self, name)) for name in SPEC_PROPERTIES}
        causal = {"causal": self.causal} if self.causal else {}
        return sizes | causal | ({"precision": "fp16"} if self.precision == "fp16" else {})

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> Self:
        """Read what `to_properties` wrote; other entries are ignored.

        Raises:
            ValueError: if a size is missing or is not a positive whole number, or ``causal`` or
                ``precision`` is unknown.
        """
        sizes: dict[str, int] = {}
        for name in SPEC_PROPERTIES:
            text = properties.get(name)
            if not isinstance(text, str) or not (text.isascii() and text.isdigit()):
                raise ValueError(f"{name} is {text!r}, expected a whole number as text")
            sizes[name] = int(text)
        causal: Any = properties.get("causal", False)
        precision: Any = properties.get("precision", "fp32")
        return cls(**sizes, causal=causal, precision=precision)


CAUSAL_FORMS: Final[tuple[CausalForm, ...]] = ("top_left", "bottom_right")
PRECISIONS: Final[tuple[Precision, ...]] = ("fp32", "fp16")
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
FUSED_CAUSAL: Final = GraphSpec("fused_causal", (QUERY, KEY, VALUE), (OUTPUT,))
"""The Attention operator that hides later keys by itself, aligned at the first: CUDA's flash kernel
takes no bias."""
GRAPHS: Final = (DECOMPOSED, FUSED_BIAS, FUSED_WEIGHTS, FUSED, FUSED_CAUSAL)
