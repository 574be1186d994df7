"""What masks mean in other libraries, measured: the facts behind the table of the contract."""

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator
from torch import Tensor, nn
from torch.nn import functional

B, H, L, S, K = 2, 3, 4, 5, 6
D = H * K
BLIND = 1


def draw(*shape: int, seed: int = 1) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def draw_mask() -> Tensor:
    """About half is true; every row has both kinds of keys."""
    mask = draw(L, S, seed=2) > 0
    mask[:, 0], mask[:, 1] = True, False
    return mask


TOKENS = draw(B, L, D), draw(B, S, D, seed=3), draw(B, S, D, seed=4)
HEADS = draw(B, H, L, K), draw(B, H, S, K, seed=3), draw(B, H, S, K, seed=4)


@pytest.fixture(scope="module")
def layer() -> nn.MultiheadAttention:
    torch.manual_seed(5)
    made = nn.MultiheadAttention(D, H, batch_first=True).eval().requires_grad_(False)
    made.out_proj.bias.fill_(0.25)
    return made


def test_true_hides_in_the_layer_of_torch(layer: nn.MultiheadAttention) -> None:
    """pytorch/pytorch #120668; rasbt/LLMs-from-scratch #1061."""
    hidden = draw_mask()
    _, weights = layer(*TOKENS, attn_mask=hidden)
    assert torch.equal(weights == 0, hidden.expand_as(weights))
    padding = torch.arange(S) >= torch.tensor([[3], [5]])
    _, weights = layer(*TOKENS, key_padding_mask=padding)
    assert torch.equal(weights == 0, padding[:, None].expand_as(weights))


@pytest.mark.parametrize("name", ["attn_mask", "key_padding_mask"])
def test_a_row_that_sees_no_key_is_nan_in_the_layer_of_torch_and_without_weights_its_bias(
    layer: nn.MultiheadAttention, name: str
) -> None:
    """Two answers of one layer to one input (pytorch/pytorch #41508, #26098, #103963)."""
    is_mask = name == "attn_mask"
    mask = torch.zeros(L, S, dtype=torch.bool) if is_mask else torch.zeros(B, S, dtype=torch.bool)
    mask[BLIND] = True
    rows = (slice(None), BLIND) if is_mask else (BLIND,)
    output, weights = layer(*TOKENS, **{name: mask})
    assert output[rows].isnan().all()
    assert weights[rows].isnan().all()
    output, _ = layer(*TOKENS, **{name: mask}, need_weights=False)
    assert torch.equal(output[rows], torch.full_like(output[rows], 0.25))


def test_true_shows_in_the_function_of_torch_and_a_row_that_sees_no_key_is_zero() -> None:
    """pytorch/pytorch #41508, #103963."""
    query, key, _ = HEADS
    every_key = torch.eye(S).expand(B, H, S, S)  # the outputs are the weights
    visible = draw_mask()
    visible[BLIND] = False
    weights = functional.scaled_dot_product_attention(query, key, every_key, attn_mask=visible)
    assert torch.equal(weights != 0, visible.expand_as(weights))
    assert not weights[:, :, BLIND].any()


def test_causal_attention_of_torch_is_aligned_at_the_top_left() -> None:
    """pytorch/pytorch #103082, #108108."""
    query, key, _ = HEADS
    every_key = torch.eye(S).expand(B, H, S, S)
    weights = functional.scaled_dot_product_attention(query, key, every_key, is_causal=True)
    assert torch.equal(weights != 0, torch.ones(L, S).tril().bool().expand_as(weights))


def make_attention(opset: int, datatype: int, **attributes: Any) -> onnx.ModelProto:
    """A model of the one operator; its values are as wide as there are keys."""
    shapes = {"query": [B, H, L, K], "key": [B, H, S, K], "value": [B, H, S, S]}
    inputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in shapes.items()]
    if datatype:
        inputs.append(helper.make_tensor_value_info("mask", datatype, [L, S]))
    output = helper.make_tensor_value_info("output", TensorProto.FLOAT, [B, H, L, S])
    names = [value.name for value in inputs]
    node = helper.make_node("Attention", names, ["output"], **attributes)
    graph = helper.make_graph([node], "attention", inputs, [output])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def run_attention(runner: str, proto: onnx.ModelProto, **mask: Any) -> np.ndarray:
    """The weights, of onnxruntime or of ONNX's own evaluator."""
    query, key, _ = HEADS
    values = np.broadcast_to(np.eye(S, dtype=np.float32), (B, H, S, S))
    feeds = {"query": query.numpy(), "key": key.numpy(), "value": values, **mask}
    if runner == "onnx":
        results: Any = ReferenceEvaluator(proto).run(None, feeds)
        return np.asarray(results[0])
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return np.asarray(session.run(None, feeds)[0])


@pytest.mark.parametrize("runner", ["onnx", "onnxruntime"])
@pytest.mark.parametrize("kind", ["bool", "-inf"])
@pytest.mark.parametrize("opset", [23, 24])
def test_true_shows_in_the_operator_of_onnx_and_a_row_that_sees_no_key_is_zero(
    opset: int, kind: str, runner: str
) -> None:
    """onnx/onnx #8068, #8108."""
    visible = draw_mask().numpy()
    visible[BLIND] = False
    datatype = TensorProto.BOOL if kind == "bool" else TensorProto.FLOAT
    mask = visible if kind == "bool" else np.where(visible, 0, -np.inf).astype(np.float32)
    weights = run_attention(runner, make_attention(opset, datatype), mask=mask)
    np.testing.assert_array_equal(weights != 0, np.broadcast_to(visible, weights.shape))
    assert not weights[:, :, BLIND].any()


@pytest.mark.parametrize("runner", ["onnx", "onnxruntime"])
def test_causal_attention_of_onnx_is_aligned_at_the_top_left(runner: str) -> None:
    """onnx/onnx #8068; microsoft/onnxruntime #29020."""
    weights = run_attention(runner, make_attention(24, 0, is_causal=1))
    np.testing.assert_array_equal(weights != 0, np.broadcast_to(np.tri(L, S) > 0, weights.shape))


def test_true_shows_in_the_formula_of_the_tutorials_and_a_row_that_sees_no_key_is_uniform() -> None:
    """pytorch/pytorch #27968."""
    query, key, _ = HEADS
    visible = draw_mask()
    visible[BLIND] = False
    scores = (query @ key.transpose(-1, -2) / K**0.5).masked_fill(visible == 0, -1e9)
    weights = scores.softmax(dim=-1)
    seeing = torch.arange(L) != BLIND
    assert torch.equal(weights[:, :, seeing] != 0, visible[seeing].expand(B, H, L - 1, S))
    assert torch.equal(weights[:, :, BLIND], torch.full((B, H, S), 1 / S))
