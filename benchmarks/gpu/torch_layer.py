"""The same layer as torch computes it, by its own fused attention."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import linear, scaled_dot_product_attention

from benchmarks.gpu.layers import Layer
from export.marks import DTYPES
from export.runtime import Provider
from model.contract import KEY, QUERY, VALUE
from model.weights import STATE_NAMES


class TorchLayer:
    """A layer on a device, in its own precision.

    Args:
        layer: whose weights it takes.
        provider: of onnxruntime, whose device it takes too.
    """

    def __init__(self, layer: Layer, provider: Provider) -> None:
        self._heads = layer.spec.num_heads
        self._dtype = DTYPES[layer.spec.precision] if provider == "cuda" else torch.float32
        self._device = torch.device(provider)
        weights = layer.draw_weights()
        self._parts = {field: self._move(getattr(weights, field)) for field in STATE_NAMES.values()}

    @torch.inference_mode()
    def run(self, tokens: dict[str, NDArray[Any]]) -> NDArray[np.float32]:
        """The output ``[B, L, D]`` in the host's memory, of tokens that are there."""
        parts = self._parts
        query, key, value = (self._move(tokens[name]) for name in (QUERY, KEY, VALUE))
        q = self._split(linear(query, parts["W_q"], parts["b_q"]))
        k = self._split(linear(key, parts["W_k"], parts["b_k"]))
        v = self._split(linear(value, parts["W_v"], parts["b_v"]))
        mixed = scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        output: NDArray[np.float32] = (
            linear(mixed, parts["fc_out"], parts["b_out"]).float().cpu().numpy()
        )
        return output

    def _move(self, array: NDArray[Any]) -> Tensor:
        return torch.from_numpy(array).to(self._device, self._dtype)

    def _split(self, projected: Tensor) -> Tensor:
        batch_size, length, width = projected.shape
        return projected.reshape(batch_size, length, self._heads, width // self._heads).transpose(
            1, 2
        )
