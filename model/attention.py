"""`MultiHeadAttention`: the layer that people train, and that `export` turns into ONNX graphs."""

import math
from typing import Literal, Self, overload

import numpy as np
import torch
from torch import Tensor, nn

from model.contract import AttentionSpec, Causal
from model.weights import STATE_NAMES, Weights, expected_shapes


class MultiHeadAttention(nn.Module):
    """Multi-head scaled dot-product attention (Vaswani et al. 2017, section 3.2).

    Args:
        d_model: D, width of query and output tokens.
        num_heads: H; must divide `d_model`.
        kdim: width of key tokens; `d_model` unless given.
        vdim: width of value tokens; `d_model` unless given.
        bias: whether the four linear maps add a bias.
        dropout: share of the attention weights set to zero while training.
        causal: hide later keys in every call: "top_left" lets query i see the keys 0..i,
            "bottom_right" the last query all keys. The served model does so too, unless a request
            says otherwise.

    Raises:
        ValueError: if a size is not positive, `num_heads` does not divide `d_model`, or `causal`
            is unknown.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        *,
        kdim: int | None = None,
        vdim: int | None = None,
        bias: bool = True,
        dropout: float = 0.0,
        causal: Causal = False,
    ) -> None:
        super().__init__()
        self.spec = AttentionSpec(d_model, num_heads, kdim, vdim, causal=causal)
        self.d_model = d_model
        self.num_heads = num_heads
        self.d_k = self.spec.d_k
        self.W_q = nn.Linear(d_model, d_model, bias=bias)
        self.W_k = nn.Linear(self.spec.kdim, d_model, bias=bias)
        self.W_v = nn.Linear(self.spec.vdim, d_model, bias=bias)
        self.fc_out = nn.Linear(d_model, d_model, bias=bias)
        self.dropout = nn.Dropout(dropout)

    @overload
    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None = None,
        *,
        return_weights: Literal[False] = False,
    ) -> Tensor: ...

    @overload
    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None = None,
        *,
        return_weights: Literal[True],
    ) -> tuple[Tensor, Tensor]: ...

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None = None,
        *,
        return_weights: bool = False,
    ) -> Tensor | tuple[Tensor, Tensor]:
        """Attend from every query position to every key position.

        Args:
            query: ``[B, L, D]``.
            key: ``[B, S, kdim]``.
            value: ``[B, S, vdim]``.
            mask: of any dtype; 0 hides a key from a query. Its axes are ``[B, H, L, S]``,
                ``[B, L, S]`` or ``[L, S]``, and each may be 1: a third axis is the batch, not
                the head. A query that sees no key attends to all keys equally.
            return_weights: also return the attention weights.

        Returns:
            The output ``[B, L, D]``; with `return_weights` also the weights ``[B, H, L, S]``.
        """
        q = self.split_heads(self.W_q(query))  # [B, H, L, K]
        k = self.split_heads(self.W_k(key))  # [B, H, S, K]
        v = self.split_heads(self.W_v(value))  # [B, H, S, K]
        mixed, weights = self.scaled_dot_product_attention(q, k, v, mask)
        output: Tensor = self.fc_out(self.join_heads(mixed))
        return (output, weights) if return_weights else output

    def split_heads(self, tokens: Tensor) -> Tensor:
        """``[B, T, D]`` to ``[B, H, T, K]``."""
        batch_size, length, _ = tokens.shape
        return tokens.reshape(batch_size, length, self.num_heads, self.d_k).transpose(1, 2)

    def join_heads(self, heads: Tensor) -> Tensor:
        """``[B, H, T, K]`` to ``[B, T, D]``."""
        return heads.transpose(1, 2).flatten(2)

    def scaled_dot_product_attention(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Attend within each head.

        Args:
            query: ``[B, H, L, K]``.
            key: ``[B, H, S, K]``.
            value: ``[B, H, S, K]``.
            mask: as in `forward`.

        Returns:
            The mixed values ``[B, H, L, K]`` and the weights ``[B, H, L, S]``.
        """
        scores = self.scaled_scores(query, key)
        visible = self.find_visible(mask, scores)
        if visible is not None:
            # Expanded, since masked_fill would also stretch the scores to a larger mask.
            hidden = ~visible.expand_as(scores)
            # The lowest number rather than -1e9: scores below -1e9 must not beat a hidden key,
            # and -1e9 does not exist in half precision. Finite, so a row without any visible
            # key becomes uniform and not NaN.
            scores = scores.masked_fill(hidden, torch.finfo(scores.dtype).min)
        return self.mix(scores, value)

    def find_visible(self, mask: Tensor | None, scores: Tensor) -> Tensor | None:
        """Bool, broadcastable to the scores ``[B, H, L, S]``; nothing where nothing hides."""
        visible = None
        if mask is not None:
            visible = (mask.unsqueeze(1) if mask.ndim == 3 else mask) != 0
        if self.spec.causal:
            length, keys = scores.shape[-2:]
            shift = keys - length if self.spec.causal == "bottom_right" else 0
            earlier = torch.ones(length, keys, dtype=torch.bool, device=scores.device).tril(shift)
            visible = earlier if visible is None else visible & earlier
        return visible

    def scaled_scores(self, query: Tensor, key: Tensor) -> Tensor:
        """``[B, H, L, K]`` and ``[B, H, S, K]`` to the scores ``[B, H, L, S]``.

        The query is scaled before the product, which could overflow in half precision.
        """
        return (query / math.sqrt(self.d_k)) @ key.transpose(-1, -2)

    def mix(self, scores: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Scores ``[B, H, L, S]``, values ``[B, H, S, K]`` to mixed values and weights."""
        weights = scores.softmax(dim=-1)
        return self.dropout(weights) @ value, weights

    def to_weights(self) -> Weights:
        """A copy of the numbers as float32 arrays; zeros for the biases of a layer without.

        Raises:
            ValueError: if one of them is NaN or an infinity.
        """
        shapes = expected_shapes(self.spec)
        arrays = {}
        for name, field in STATE_NAMES.items():
            # By attribute, not from state_dict(): a parametrized weight has other names there.
            linear, part = name.split(".")
            tensor = getattr(getattr(self, linear), part)
            arrays[field] = (
                np.zeros(shapes[field], np.float32)
                if tensor is None
                else tensor.detach().float().cpu().numpy().copy()
            )
        return Weights(self.spec, **arrays)

    @classmethod
    def from_weights(cls, weights: Weights) -> Self:
        """The layer with these numbers, in float32 and evaluation mode."""
        spec = weights.spec
        layer = cls(
            spec.d_model, spec.num_heads, kdim=spec.kdim, vdim=spec.vdim, causal=spec.causal
        )
        layer.spec = spec
        layer.load_state_dict(
            {
                name: torch.from_numpy(getattr(weights, field).copy())
                for name, field in STATE_NAMES.items()
            }
        )
        return layer.eval()

    @classmethod
    def from_torch(cls, source: nn.MultiheadAttention) -> Self:
        """The same layer as `source`, with a copy of its numbers.

        Remember that ``nn.MultiheadAttention`` reads ``[L, B, D]`` unless it was made with
        ``batch_first=True``, and that True in its masks means hidden; here tensors are
        ``[B, L, D]`` and true means visible.

        Raises:
            ValueError: if `source` was made with ``add_bias_kv`` or ``add_zero_attn``, which
                add keys that this layer does not have.
        """
        has_bias_kv = source.bias_k is not None or source.bias_v is not None
        for option, is_set in (
            ("add_bias_kv", has_bias_kv),
            ("add_zero_attn", source.add_zero_attn),
        ):
            if is_set:
                raise ValueError(
                    f"nn.MultiheadAttention with {option}=True has an extra key, which the served "
                    f"layer does not; train and export it with {option}=False"
                )
        layer = cls(
            source.embed_dim,
            source.num_heads,
            kdim=source.kdim,
            vdim=source.vdim,
            bias=source.in_proj_bias is not None,
            dropout=source.dropout,
        ).to(source.out_proj.weight)
        layer.load_state_dict(rename_torch_state(source))
        return layer.train(source.training)


def rename_torch_state(source: nn.MultiheadAttention) -> dict[str, Tensor]:
    """The numbers of `source` under the names of `MultiHeadAttention`.

    ``in_proj_weight`` and ``in_proj_bias`` hold query, key and value in this order.
    """
    names = ("W_q", "W_k", "W_v")
    if source.in_proj_weight is not None:
        matrices = source.in_proj_weight.chunk(3)
    else:
        matrices = (source.q_proj_weight, source.k_proj_weight, source.v_proj_weight)
    state = {f"{name}.weight": matrix for name, matrix in zip(names, matrices, strict=True)}
    state["fc_out.weight"] = source.out_proj.weight
    if source.in_proj_bias is not None:
        offsets = source.in_proj_bias.chunk(3)
        state |= {f"{name}.bias": offset for name, offset in zip(names, offsets, strict=True)}
        state["fc_out.bias"] = source.out_proj.bias
    return {name: tensor.detach() for name, tensor in state.items()}
