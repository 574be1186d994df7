"""The module, against the layers of torch, the usual tutorial class and the float64 reference."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim
from torch.nn import functional

from model.attention import MultiHeadAttention
from model.contract import CausalForm
from model.reference import attend

B, H, L, S, D, KDIM, VDIM = 2, 3, 4, 5, 12, 8, 10


def draw_tokens(kdim: int = KDIM, vdim: int = VDIM) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    shapes = (B, L, D), (B, S, kdim), (B, S, vdim)
    query, key, value = (torch.randn(shape, generator=generator) for shape in shapes)
    return query, key, value


def draw_mask(*shape: int) -> Tensor:
    """True lets see; every row sees a key."""
    mask = torch.rand(shape, generator=torch.Generator().manual_seed(2)) < 0.6
    mask[..., 0] = True
    return mask


def make_layer(**options: Any) -> MultiHeadAttention:
    torch.manual_seed(3)
    return MultiHeadAttention(D, H, **{"kdim": KDIM, "vdim": VDIM} | options).eval()


def make_torch_layer(**options: Any) -> nn.MultiheadAttention:
    """A layer of torch whose biases are not the zeros that it starts with."""
    torch.manual_seed(4)
    layer = nn.MultiheadAttention(D, H, **options).eval()
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.uniform_(-0.5, 0.5)
    return layer


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("widths", [{}, {"kdim": KDIM}, {"kdim": KDIM, "vdim": VDIM}])
def test_it_equals_the_layer_of_torch_whose_true_means_hidden(
    batch_first: bool, bias: bool, widths: dict[str, int]
) -> None:
    source = make_torch_layer(batch_first=batch_first, bias=bias, **widths)
    tokens = draw_tokens(source.kdim, source.vdim)
    visible, real_keys = draw_mask(B, H, L, S), draw_mask(B, S)
    turned = tokens if batch_first else [tensor.transpose(0, 1) for tensor in tokens]
    wanted, wanted_weights = source(
        *turned,
        attn_mask=~visible.reshape(B * H, L, S),
        key_padding_mask=~real_keys,
        average_attn_weights=False,
    )
    output, weights = MultiHeadAttention.from_torch(source)(
        *tokens, visible & real_keys[:, None, None], return_weights=True
    )
    torch.testing.assert_close(output, wanted if batch_first else wanted.transpose(0, 1))
    torch.testing.assert_close(weights, wanted_weights)


def test_it_equals_the_fused_function_of_torch_given_the_same_weights() -> None:
    layer, (query, key, value), mask = make_layer(), draw_tokens(), draw_mask(B, 1, L, S)
    q, k, v = (
        linear(x).reshape(B, -1, H, D // H).transpose(1, 2)
        for x, linear in ((query, layer.W_q), (key, layer.W_k), (value, layer.W_v))
    )
    mixed = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    wanted = layer.fc_out(mixed.transpose(1, 2).flatten(2))
    torch.testing.assert_close(layer(query, key, value, mask), wanted)


@pytest.mark.parametrize(("length", "keys"), [(L, S), (S, L)])
@pytest.mark.parametrize("causal", ["top_left", "bottom_right"])
@pytest.mark.parametrize("with_mask", [True, False])
def test_a_causal_layer_hides_later_keys_in_every_call(
    causal: CausalForm, with_mask: bool, length: int, keys: int
) -> None:
    layer = MultiHeadAttention(D, H, causal=causal).requires_grad_(False)
    query, key = torch.randn(B, length, D), torch.randn(B, keys, D)
    mask = draw_mask(B, length, keys) if with_mask else None
    wanted = attend(layer.to_weights(), query, key, key, mask=mask, causal=causal)
    for got, right in zip(layer(query, key, key, mask, return_weights=True), wanted, strict=True):
        torch.testing.assert_close(got.double(), torch.from_numpy(right), rtol=0, atol=1e-6)


def test_a_layer_stays_causal_on_its_way_through_its_weights() -> None:
    layer = MultiHeadAttention(D, H, causal="bottom_right")
    assert MultiHeadAttention.from_weights(layer.to_weights()).spec == layer.spec


class TutorialAttention(nn.Module):
    """The class as tutorials write it: batch and heads in one axis, -1e9 for what is hidden."""

    def __init__(self, d_model: int, num_heads: int) -> None:
        super().__init__()
        self.num_heads, self.d_k = num_heads, d_model // num_heads
        self.W_q, self.W_k = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)
        self.W_v, self.fc_out = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)

    def split_heads(self, x: Tensor) -> Tensor:
        batch_size, length, _ = x.shape
        x = x.view(batch_size, length, self.num_heads, self.d_k).permute(0, 2, 1, 3)
        return x.reshape(batch_size * self.num_heads, length, self.d_k)

    def forward(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        batch_size, length, d_model = q.shape
        q, k = self.split_heads(self.W_q(q)), self.split_heads(self.W_k(k))
        scores = torch.bmm(q, k.transpose(1, 2)) / math.sqrt(self.d_k)
        if mask is not None:
            mask = mask.repeat_interleave(self.num_heads, dim=0)
            scores = scores.masked_fill(mask == 0, -1e9)
        mixed = torch.bmm(functional.softmax(scores, dim=-1), self.split_heads(self.W_v(v)))
        mixed = mixed.view(batch_size, self.num_heads, length, self.d_k).permute(0, 2, 1, 3)
        output: Tensor = self.fc_out(mixed.reshape(batch_size, length, d_model))
        return output


@pytest.mark.parametrize("kind", [torch.bool, torch.uint8, torch.int64, torch.float32])
def test_it_loads_the_tutorial_class_and_equals_it(kind: torch.dtype) -> None:
    torch.manual_seed(5)
    tutorial = TutorialAttention(D, H)
    layer = MultiHeadAttention(D, H)
    layer.load_state_dict(tutorial.state_dict(), strict=True)
    tokens, mask = draw_tokens(D, D), draw_mask(B, L, S).to(kind)
    mask[0, 2] = 0  # a row that sees no key
    torch.testing.assert_close(layer(*tokens), tutorial(*tokens))
    for ours in (mask, mask[:, None]):
        torch.testing.assert_close(layer(*tokens, ours), tutorial(*tokens, mask))


@pytest.mark.parametrize(
    "shape",
    [
        *[(B, H, L, S), (B, 1, 1, S), (1, H, L, S)],
        *[(B, L, S), (1, L, S), (B, 1, S), (1, 1, S)],
        *[(L, S), (1, S)],
    ],
)
def test_it_equals_the_float64_reference(shape: tuple[int, ...]) -> None:
    layer, tokens, mask = make_layer(), draw_tokens(), draw_mask(*shape)
    found = layer(*tokens, mask, return_weights=True)
    wanted = attend(layer.to_weights(), *(x.numpy() for x in tokens), mask=mask.numpy())
    assert found[1].shape == (B, H, L, S)
    for array, expected in zip(found, wanted, strict=True):
        np.testing.assert_allclose(array.detach().numpy(), expected, atol=1e-6)


@pytest.mark.parametrize("num_heads", [1, 2, 3, 4])
@pytest.mark.parametrize("batch_size", [1, 2, 4])
def test_the_third_axis_of_a_mask_is_the_batch_whatever_the_number_of_heads(
    batch_size: int, num_heads: int
) -> None:
    torch.manual_seed(6)
    layer, x = MultiHeadAttention(D, num_heads).eval(), torch.randn(batch_size, L, D)
    mask = draw_mask(batch_size, L, L)
    found = layer(x, x, x, mask, return_weights=True)
    wanted = attend(layer.to_weights(), x.numpy(), mask=mask.numpy())
    for array, expected in zip(found, wanted, strict=True):
        np.testing.assert_allclose(array.detach().numpy(), expected, atol=1e-6)


@pytest.mark.parametrize("shape", [(H, L, S), (B * H, L, S), (B, 1, H, L, S), (L, S - 1)])
def test_a_mask_that_does_not_fit_never_stretches_the_answer(shape: tuple[int, ...]) -> None:
    query, key, value = (tensor[:1] for tensor in draw_tokens())
    with pytest.raises(RuntimeError, match="expand"):
        make_layer()(query, key, value, draw_mask(*shape))


@pytest.mark.parametrize("shape", [(L, S), (B, L, S), (B, H, L, S)])
def test_a_mask_of_every_rank_passes_through_the_exporter_of_torch(shape: tuple[int, ...]) -> None:
    layer, tokens, mask = make_layer(), draw_tokens(), draw_mask(*shape)
    batch, length, keys = Dim("batch"), Dim("length"), Dim("keys")
    axes = {len(shape) - 2: length, len(shape) - 1: keys} | ({0: batch} if len(shape) > 2 else {})
    free = ({0: batch, 1: length}, {0: batch, 1: keys}, {0: batch, 1: keys}, axes)
    program = torch.export.export(layer, (*tokens, mask), dynamic_shapes=free)
    torch.testing.assert_close(program.module()(*tokens, mask), layer(*tokens, mask))


def test_without_weights_asked_for_the_output_comes_alone_and_is_the_same() -> None:
    layer, tokens = make_layer(), draw_tokens()
    output = layer(*tokens)
    assert output.shape == (B, L, D)
    assert torch.equal(output, layer(*tokens, return_weights=True)[0])


@pytest.mark.parametrize("kind", [torch.bool, torch.int32, torch.float32, torch.float16])
def test_zero_hides_whatever_the_datatype_of_the_mask(kind: torch.dtype) -> None:
    mask = draw_mask(B, 1, L, S)
    _, weights = make_layer()(*draw_tokens(), mask.to(kind), return_weights=True)
    assert torch.equal(weights != 0, mask.expand_as(weights))


def test_a_row_that_sees_no_key_attends_to_all_keys_equally() -> None:
    mask = draw_mask(B, 1, L, S)
    mask[0, 0, 2] = False
    _, weights = make_layer()(*draw_tokens(), mask, return_weights=True)
    assert torch.equal(weights[0, :, 2], torch.full((H, S), 1 / S))


def test_a_hidden_key_is_not_beaten_by_scores_below_minus_a_billion() -> None:
    layer = MultiHeadAttention(1, 1, bias=False)
    for linear in (layer.W_q, layer.W_k, layer.W_v, layer.fc_out):
        nn.init.ones_(linear.weight)
    query, key = torch.full((1, 1, 1), -1e5), torch.tensor([[[1e5], [0.0]]])
    _, weights = layer(query, key, key, torch.tensor([[True, False]]), return_weights=True)
    assert weights.flatten().tolist() == [1.0, 0.0]


@pytest.mark.parametrize(("kind", "tolerance"), [(torch.float16, 2e-3), (torch.bfloat16, 2e-2)])
def test_half_precision_masks_without_overflow(kind: torch.dtype, tolerance: float) -> None:
    layer, mask = make_layer().to(kind), draw_mask(B, 1, L, S)
    mask[0, 0, 2] = False
    tokens = [tensor.to(kind) for tensor in draw_tokens()]
    output, weights = layer(*tokens, mask, return_weights=True)
    expected = attend(layer.to_weights(), *(x.float().numpy() for x in tokens), mask=mask.numpy())
    assert output.dtype == weights.dtype == kind
    for found, wanted in zip((output, weights), expected, strict=True):
        np.testing.assert_allclose(found.detach().float().numpy(), wanted, atol=tolerance)


def test_heads_that_do_not_divide_the_width_are_refused() -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the text is compared in full
        MultiHeadAttention(12, 5)
    assert str(caught.value) == "d_model (12) must be a multiple of num_heads (5)"


@pytest.mark.parametrize("width", ["kdim", "vdim"])
def test_a_width_of_zero_is_not_taken_for_an_absent_one(width: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the text is compared in full
        make_layer(**{width: 0})
    assert str(caught.value) == f"{width} is 0, expected a positive number"


def test_the_sizes_are_attributes() -> None:
    layer = make_layer()
    assert (layer.d_model, layer.num_heads, layer.d_k) == (D, H, D // H)


def test_dropout_falls_on_the_weights_in_training_alone() -> None:
    layer, tokens = make_layer(dropout=0.5), draw_tokens()
    still = layer(*tokens)
    assert torch.equal(layer(*tokens), still)
    assert not torch.equal(layer.train()(*tokens), still)


def test_every_parameter_learns() -> None:
    layer = make_layer()
    layer(*draw_tokens(), draw_mask(B, 1, L, S)).square().sum().backward()
    # The bias of the keys moves all scores of a row alike, so the softmax does not see it.
    for name, parameter in layer.named_parameters():
        assert parameter.grad is not None
        assert name == "W_k.bias" or parameter.grad.abs().max() > 1e-4


@pytest.mark.parametrize("option", ["add_bias_kv", "add_zero_attn"])
def test_a_layer_of_torch_with_keys_of_its_own_is_refused(option: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the text is compared in full
        MultiHeadAttention.from_torch(nn.MultiheadAttention(D, H, **{option: True}))
    assert str(caught.value) == (
        f"nn.MultiheadAttention with {option}=True has an extra key, which the served layer does "
        f"not; train and export it with {option}=False"
    )


@pytest.mark.parametrize("training", [True, False])
def test_a_layer_of_torch_keeps_datatype_mode_and_dropout(training: bool) -> None:
    source = nn.MultiheadAttention(D, H, dropout=0.25, dtype=torch.bfloat16).train(training)
    layer = MultiHeadAttention.from_torch(source)
    assert layer.W_q.weight.dtype == torch.bfloat16
    assert layer.training == training
    assert layer.dropout.p == 0.25


def test_a_layer_of_torch_is_copied() -> None:
    source = make_torch_layer()
    layer = MultiHeadAttention.from_torch(source)
    with torch.no_grad():
        source.out_proj.weight.zero_()
    assert layer.fc_out.weight.abs().max() > 0
