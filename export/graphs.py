"""The ONNX graphs of one layer, each traced from the PyTorch module by ``torch.onnx.export``."""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import onnx
import torch
from torch import Tensor, nn
from torch.export import Dim

from export.marks import mark_weights
from export.onnx_file import refer_to_weights, tidy_graph
from model.attention import MultiHeadAttention
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
    AttentionSpec,
    GraphSpec,
)

# onnxruntime has no kernel for the Attention of opset 25, and torch writes a broken file for 26.
ATTENTION_OPSET = 24
PORTABLE_OPSET = 18
POST_SOFTMAX = 3  # value of the attribute qk_matmul_output_mode

Axes = dict[int, Dim]


class Decomposed(nn.Module):
    """The layer as matrix products and a softmax, with the weights as second output."""

    def __init__(self, layer: MultiHeadAttention) -> None:
        super().__init__()
        self.layer = layer

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, bias: Tensor
    ) -> tuple[Tensor, Tensor]:
        """``[B,L,D], [B,S,kdim], [B,S,vdim], [B or 1,H or 1,L or 1,S]`` to output, weights."""
        layer = self.layer
        q = layer.split_heads(project(layer.W_q, query).to(bias.dtype))
        k = layer.split_heads(project(layer.W_k, key).to(bias.dtype))
        v = layer.split_heads(project(layer.W_v, value).to(bias.dtype))
        scores = layer.scaled_scores(q, k)
        # As a bare ONNX node, so that torch does not freeze which axes of the bias are 1.
        biased = torch.onnx.ops.symbolic(
            "Add", (scores, bias), dtype=scores.dtype, shape=scores.shape, version=14
        )
        mixed, weights = layer.mix(biased, v)
        return project(layer.fc_out, layer.join_heads(mixed)).to(bias.dtype), weights


class Fused(nn.Module):
    """The layer around one Attention operator, which joins and splits the heads itself.

    https://onnx.ai/onnx/operators/onnx__Attention.html
    """

    def __init__(self, layer: MultiHeadAttention) -> None:
        super().__init__()
        self.layer = layer

    def attend(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        *options: Tensor | None,
        mode: int = 0,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor]:
        """Project, attend, and return the joined heads ``[B,L,D]`` and the fourth output.

        A bias is float32, and so is what it is added to: float16 has no -1e30, and a row that sees
        no key would not be uniform. Without a bias CUDA's flash kernel takes the tokens in float16
        and keeps scores and sums in float32; it takes no ``softmax_precision``.
        """
        layer = self.layer
        q, k, v = project(layer.W_q, query), project(layer.W_k, key), project(layer.W_v, value)
        if options and options[0] is not None:
            q, k, v = (each.to(options[0].dtype) for each in (q, k, v))
        (batch_size, length, _), key_length = q.shape, k.shape[1]
        past = (batch_size, layer.num_heads, key_length, layer.d_k)
        joined, _, _, fourth = torch.onnx.ops.symbolic_multi_out(
            "Attention",
            (q, k, v, *options),
            {
                "q_num_heads": layer.num_heads,
                "kv_num_heads": layer.num_heads,
                "qk_matmul_output_mode": mode,
                **({"is_causal": 1} if is_causal else {}),
            },
            dtypes=(q.dtype,) * 4,
            # Declared in full: torch's own operator writes 0 for the last axis of the weights.
            shapes=(q.shape, past, past, (batch_size, layer.num_heads, length, key_length)),
            version=ATTENTION_OPSET,
        )
        return joined, fourth


class FusedBias(Fused):
    """Additive bias, output alone."""

    def forward(self, query: Tensor, key: Tensor, value: Tensor, bias: Tensor) -> Tensor:
        """``[B,L,D], [B,S,kdim], [B,S,vdim], [B or 1,H or 1,L,S]`` to ``[B,L,D]``."""
        joined, _ = self.attend(query, key, value, bias)
        return project(self.layer.fc_out, joined).to(query.dtype)


class FusedWeights(Fused):
    """Additive bias, output and weights."""

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, bias: Tensor
    ) -> tuple[Tensor, Tensor]:
        """``[B,L,D], [B,S,kdim], [B,S,vdim], [B or 1,H or 1,L,S]`` to output and weights."""
        joined, weights = self.attend(query, key, value, bias, mode=POST_SOFTMAX)
        return project(self.layer.fc_out, joined).to(query.dtype), weights


class FusedLengths(Fused):
    """Key lengths instead of a bias: CUDA's flash kernel takes no mask."""

    def forward(self, query: Tensor, key: Tensor, value: Tensor, key_lengths: Tensor) -> Tensor:
        """``[B,L,D], [B,S,kdim], [B,S,vdim]``, int64 ``[B]`` to ``[B,L,D]``."""
        joined, _ = self.attend(query, key, value, None, None, None, key_lengths)
        return project(self.layer.fc_out, joined).to(query.dtype)


def project(linear: nn.Linear, tokens: Tensor) -> Tensor:
    """``[B,T,inputs]`` to ``[B,T,outputs]``, in the precision of the weights."""
    projected: Tensor = linear(tokens.to(linear.weight.dtype))
    return projected


class FusedCausal(Fused):
    """Query i sees the keys up to the i-th, without a bias: for CUDA's flash kernel.

    Key lengths are no input of it: with them the operator aligns query and keys at the last key of
    each item, where onnxruntime is of June 2026 or newer (onnx pull request 8068).
    """

    def forward(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """``[B,L,D], [B,S,kdim], [B,S,vdim]`` to ``[B,L,D]``."""
        joined, _ = self.attend(query, key, value, is_causal=True)
        return project(self.layer.fc_out, joined).to(query.dtype)


BODIES: dict[GraphSpec, tuple[type[nn.Module], int]] = {
    DECOMPOSED: (Decomposed, PORTABLE_OPSET),
    FUSED_BIAS: (FusedBias, ATTENTION_OPSET),
    FUSED_WEIGHTS: (FusedWeights, ATTENTION_OPSET),
    FUSED: (FusedLengths, ATTENTION_OPSET),
    FUSED_CAUSAL: (FusedCausal, ATTENTION_OPSET),
}


def trace_graph(layer: MultiHeadAttention, graph: GraphSpec) -> onnx.ModelProto:
    """Export one graph of `layer` with free batch size, query length and key length.

    Args:
        layer: in evaluation mode, float32.
        graph: which one.

    Returns:
        The model; its weights are references to the file that `onnx_file.write_weights` writes.

    Raises:
        ValueError: if `layer` is in training mode.
        VerificationError: if the graph has a tensor that is not one of the layer's weights.
    """
    if layer.training:
        raise ValueError("the layer is in training mode, expected layer.eval()")
    body, opset = BODIES[graph]
    with quiet_exporter():
        program = torch.onnx.export(
            body(mark_weights(layer)).eval(),
            example_inputs(layer.spec, graph),
            input_names=list(graph.inputs),
            output_names=list(graph.outputs),
            dynamic_shapes=free_axes(graph),
            opset_version=opset,
            dynamo=True,
            verbose=False,
        )
    if program is None:
        raise RuntimeError("torch.onnx.export returned nothing")
    names = refer_to_weights(program.model, layer.spec)
    proto = program.model_proto
    tidy_graph(proto, layer.spec, names)
    return proto


def example_inputs(spec: AttentionSpec, graph: GraphSpec) -> tuple[Tensor, ...]:
    """Tensors to trace with.

    Key and value are distinct objects: given one tensor twice, the exporter takes both for one
    input and computes the keys from `value` (pytorch issue 144683).
    """
    batch_size, query_length, key_length = 2, 4, 5
    shapes = {
        QUERY: (batch_size, query_length, spec.d_model),
        KEY: (batch_size, key_length, spec.kdim),
        VALUE: (batch_size, key_length, spec.vdim),
        BIAS: (batch_size, spec.num_heads, query_length, key_length),
    }
    # Datatype and device are said: the defaults of torch are the caller's to change.
    examples = {
        name: torch.zeros(s, dtype=torch.float32, device="cpu") for name, s in shapes.items()
    }
    examples[KEY_LENGTHS] = torch.full((batch_size,), key_length, device="cpu")
    return tuple(examples[name] for name in graph.inputs)


def free_axes(graph: GraphSpec) -> tuple[Axes, ...]:
    """The symbol of each free axis of the graph's inputs."""
    batch, length, keys = Dim("batch_size"), Dim("query_length"), Dim("key_length")
    # The Attention operator never broadcasts the query axis of its bias; Add does.
    bias_length = Dim("bias_query_length") if graph is DECOMPOSED else length
    axes: dict[str, Axes] = {
        QUERY: {0: batch, 1: length},
        KEY: {0: batch, 1: keys},
        VALUE: {0: batch, 1: keys},
        BIAS: {0: Dim("bias_batch_size"), 1: Dim("bias_num_heads"), 2: bias_length, 3: keys},
        KEY_LENGTHS: {0: batch},
    }
    return tuple(axes[name] for name in graph.inputs)


@contextmanager
def quiet_exporter() -> Iterator[None]:
    """Silence what the exporter says on every call and nobody can act on."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", r".*isinstance\(treespec, LeafSpec\)", FutureWarning)
            warnings.filterwarnings("ignore", "# The axis name", UserWarning)
            yield
    finally:
        logger.setLevel(level)
