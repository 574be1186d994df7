"""Stand-ins for the weights: they take no memory, and leave the layer as it is."""

import itertools

import torch
from torch.nn.utils import parametrizations

from export.marks import MARKS, mark_weights, sketch_layer
from model.attention import MultiHeadAttention
from model.contract import AttentionSpec

SPEC = AttentionSpec(12, 3, kdim=8, vdim=10)


def test_every_part_has_a_mark_in_its_whole_shape_and_no_memory() -> None:
    marked = mark_weights(sketch_layer(SPEC))
    shapes = {
        name: tensor.shape
        for name, tensor in MultiHeadAttention(12, 3, kdim=8, vdim=10).state_dict().items()
    }
    for name, tensor in marked.state_dict().items():
        assert tensor.shape == shapes[name]
        assert torch.unique(tensor).tolist() == [torch.tensor(MARKS[name]).item()]
        assert tensor.untyped_storage().nbytes() == 4
    assert marked.spec == SPEC


def test_no_mark_is_a_sum_or_a_multiple_of_others() -> None:
    marks = list(MARKS.values())
    for one, other in itertools.product(marks, marks):
        assert min(abs(one + other - mark) for mark in marks) > 1e-4
        assert min(abs(one * factor - mark) for mark in marks for factor in (2, 3, 0.5)) > 1e-4


def test_the_layer_itself_keeps_its_numbers_and_what_parametrizes_them() -> None:
    layer = MultiHeadAttention(12, 3, bias=False).eval()
    parametrizations.weight_norm(layer.W_k)
    before = {name: tensor.clone() for name, tensor in layer.state_dict().items()}
    marked = mark_weights(layer)
    assert list(marked.state_dict()) == [
        f"{name}.weight" for name in ("W_q", "W_k", "W_v", "fc_out")
    ]
    assert all(torch.equal(tensor, before[name]) for name, tensor in layer.state_dict().items())
    assert type(marked) is type(layer)
