"""Stand-ins for the weights while a graph is traced: one number each, whatever the size.

So tracing takes no memory for weights, and a tensor of the graph is known by its number as the
weight that it stands for, where real weights may be equal to each other.
"""

import copy
from typing import Final

import torch
from torch import nn

from model.attention import MultiHeadAttention
from model.contract import AttentionSpec, Precision
from model.weights import STATE_NAMES

DTYPES: Final[dict[Precision, torch.dtype]] = {"fp32": torch.float32, "fp16": torch.float16}

# No two are multiples or sums of each other, so that what is computed from them is none of them.
MARKS: Final = {name: 0.1 + 0.0137 * n + 0.00071 * n * n for n, name in enumerate(STATE_NAMES)}


def mark_weights(layer: MultiHeadAttention) -> MultiHeadAttention:
    """A copy of `layer` with a mark in the place of each weight; it takes no memory for them.

    The marks have the precision that the layer is to be exported in.
    """
    dtype = DTYPES[layer.spec.precision]
    linears = {"W_q": layer.W_q, "W_k": layer.W_k, "W_v": layer.W_v, "fc_out": layer.fc_out}
    # What is in the memo is not copied, neither its numbers nor what parametrizes them.
    memo = {id(linear): mark_linear(name, linear, dtype) for name, linear in linears.items()}
    return copy.deepcopy(layer, memo)


def mark_linear(name: str, source: nn.Linear, dtype: torch.dtype) -> nn.Linear:
    """A linear map of the sizes of `source` whose parts are marks."""
    bias = source.bias is not None
    linear = nn.Linear(source.in_features, source.out_features, bias=bias, device="meta")
    for part, parameter in list(linear.named_parameters()):
        mark = torch.tensor(MARKS[f"{name}.{part}"], dtype=dtype, device="cpu")
        setattr(linear, part, nn.Parameter(mark.expand(parameter.shape), requires_grad=False))
    return linear.eval()


def sketch_layer(spec: AttentionSpec) -> MultiHeadAttention:
    """A layer of these sizes without numbers, to be marked."""
    with torch.device("meta"):
        layer = MultiHeadAttention(spec.d_model, spec.num_heads, kdim=spec.kdim, vdim=spec.vdim)
    layer.spec = spec
    return layer.eval()
