"""Faults of checkpoints: weights in another order, layout or number than their reader thinks."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from export.checkpoints.checkpoint import read_checkpoint
from export.errors import CheckpointError
from model.attention import MultiHeadAttention
from model.contract import AttentionSpec
from model.reference import attend

B, H, L, S, D, K = 2, 4, 5, 7, 16, 4
State = dict[str, Tensor]


def save(state: State, folder: Path) -> Path:
    path = folder / "x.safetensors"
    save_file({name: tensor.contiguous() for name, tensor in state.items()}, path)
    return path


def refuse(state: State, folder: Path) -> str:
    """The text with which a checkpoint is refused."""
    with pytest.raises(CheckpointError) as caught:
        read_checkpoint(save(state, folder), num_heads=H)
    return str(caught.value)


def draw(*shape: int, seed: int = 1) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)) / 3


def test_the_packed_matrix_of_torch_is_query_key_and_value_in_this_order(tmp_path: Path) -> None:
    """Any other order has the right shapes too.

    pytorch/pytorch #21288, #18334, #32764; MarcoMeter/episodic-transformer-memory-ppo #22.
    """
    torch.manual_seed(2)
    layer = nn.MultiheadAttention(D, H, batch_first=True).eval().requires_grad_(False)
    layer.in_proj_bias.uniform_(-1, 1)
    tokens = [draw(B, length, D, seed=seed) for seed, length in ((3, L), (4, S), (5, S))]
    wanted = layer(*tokens, average_attn_weights=False)
    weights = read_checkpoint(save(layer.state_dict(), tmp_path), num_heads=H)
    found = attend(weights, *(tensor.numpy() for tensor in tokens))
    for got, right in zip(found, wanted, strict=True):
        np.testing.assert_allclose(got, right.numpy(), rtol=0, atol=1e-6)
    packed = layer.in_proj_weight.chunk(3)
    for name, matrix in zip(("W_q", "W_k", "W_v"), packed, strict=True):
        np.testing.assert_array_equal(getattr(weights, name), matrix.numpy())


INTERLEAVED: dict[str, tuple[State, str]] = {
    "megatron": (
        {
            "layers.0.self_attention.query_key_value.weight": draw(H * 3 * K, D),
            "layers.0.self_attention.query_key_value.bias": draw(H * 3 * K),
            "layers.0.self_attention.dense.weight": draw(D, D, seed=2),
        },
        "layer 'layers.0.self_attention' of 'x.safetensors' is of the family GPT-NeoX, BLOOM, "
        "Falcon, Megatron, which keeps query, key and value of each head side by side in one "
        "matrix, and tells positions to its scores (rotations, ALiBi); expected a layer that "
        "computes softmax(q k^T / sqrt(d_k)) v alone",
    ),
    "apex": (
        {"in_proj_weight": draw(3 * D, D), "out_proj_weight": draw(D, D, seed=2)},
        "tensor 'out_proj.weight' of 'x.safetensors' is missing; save the whole state_dict of the "
        "layer",
    ),
    "nanogpt": (
        {
            "h.0.attn.c_attn.weight": draw(3 * D, D),
            "h.0.attn.c_proj.weight": draw(D, D, seed=2),
        },
        "tensor 'h.0.attn.c_attn.weight' of 'x.safetensors' has shape [48, 16], expected "
        "[d_model, 3 * d_model], as the Conv1D of GPT-2 stores it; of nn.Linear (nanoGPT, "
        "StarCoder) it is not known what the rows hold",
    ),
}


@pytest.mark.parametrize("source", INTERLEAVED)
def test_a_family_that_is_not_read_is_told_by_its_names_and_never_guessed_from_shapes(
    source: str, tmp_path: Path
) -> None:
    """Interleaved heads have the shapes of others: no error, wrong numbers.

    NVIDIA/apex #838.
    """
    state, text = INTERLEAVED[source]
    assert refuse(state, tmp_path) == text


def test_the_matrices_of_gpt_2_are_turned_the_square_one_too(tmp_path: Path) -> None:
    """A square matrix that is not turned has the right shape.

    huggingface/transformers #311, #2035; AutoGPTQ/AutoGPTQ #139; nntile/nntile #370, #402.
    """
    packed, output = draw(D, 3 * D), draw(D, D, seed=2)
    state = {"h.0.attn.c_attn.weight": packed, "h.0.attn.c_proj.weight": output}
    weights = read_checkpoint(save(state, tmp_path), num_heads=H)
    np.testing.assert_array_equal(weights.fc_out, output.numpy().T)
    for name, matrix in zip(("W_q", "W_k", "W_v"), packed.chunk(3, dim=1), strict=True):
        np.testing.assert_array_equal(getattr(weights, name), matrix.numpy().T)


def make_grouped(family: str) -> tuple[State, str]:
    """A layer with two heads of keys and values for its four of queries, and its wrong tensor."""
    few = draw(D // 2, D)
    if family == "own":
        layer = MultiHeadAttention(D, H).state_dict()
        return layer | {"W_k.weight": few, "W_v.weight": few + 1}, "W_k.weight"
    if family == "torch":
        layer = nn.MultiheadAttention(D, H, kdim=D, vdim=D + 2).state_dict()
        return layer | {"k_proj_weight": few, "v_proj_weight": few + 1}, "k_proj_weight"
    names = ("self.query", "self.key", "self.value", "output.dense")
    state = {f"layer.0.attention.{name}.weight": draw(D, D) for name in names}
    wrong = "layer.0.attention.self.key.weight"
    return state | {wrong: few, "layer.0.attention.self.value.weight": few + 1}, wrong


@pytest.mark.parametrize("family", ["own", "torch", "bert"])
def test_fewer_heads_of_keys_than_of_queries_are_refused(family: str, tmp_path: Path) -> None:
    """huggingface/transformers #33928."""
    state, wrong = make_grouped(family)
    assert refuse(state, tmp_path) == (
        f"tensor '{wrong}' of 'x.safetensors' has shape [8, 16], expected [16, 16]"
    )


@pytest.mark.parametrize("widths", [{}, {"kdim": 10}, {"kdim": 10, "vdim": 14}], ids=str)
@pytest.mark.parametrize("bias", [True, False])
def test_biases_may_be_absent_and_keys_and_values_of_other_widths(
    bias: bool, widths: dict[str, Any], tmp_path: Path
) -> None:
    """pytorch/pytorch #21288, #34793."""
    torch.manual_seed(6)
    layer = nn.MultiheadAttention(D, H, bias=bias, batch_first=True, **widths).eval()
    layer.requires_grad_(False)
    spec = AttentionSpec(D, H, **widths)
    tokens = [draw(B, L, D), draw(B, S, spec.kdim, seed=2), draw(B, S, spec.vdim, seed=3)]
    weights = read_checkpoint(save(layer.state_dict(), tmp_path), num_heads=H)
    assert weights.spec == spec
    found, _ = attend(weights, *(tensor.numpy() for tensor in tokens))
    np.testing.assert_allclose(found, layer(*tokens)[0].numpy(), rtol=0, atol=1e-6)
