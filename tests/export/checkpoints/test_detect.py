"""Which layer of a checkpoint is meant."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from export.checkpoints.detect import FAMILIES, detect, find_layers
from export.checkpoints.family import find_prefixes
from export.checkpoints.tensors import Tensors
from export.errors import CheckpointError

KNOWN = (
    "MultiHeadAttention (W_q, W_k, W_v, fc_out or W_o); nn.MultiheadAttention (in_proj_weight, "
    "out_proj); BERT (attention.self.query, attention.output.dense)"
)
DECODER = (
    "decoder.layers.0.self_attn.in_proj_weight",
    "decoder.layers.0.multihead_attn.in_proj_weight",
    "decoder.layers.10.self_attn.in_proj_weight",
    "decoder.layers.1.self_attn.in_proj_weight",
    "decoder.layers.1.norm1.weight",
)


def hold(*names: str) -> Tensors:
    return Tensors("x.pt", frozenset(names), lambda _: torch.ones(1))


def refusal_of(tensors: Tensors, wanted: str | None) -> str:
    with pytest.raises(CheckpointError) as caught:
        detect(tensors, wanted)
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "layer"),
    [
        ("W_q.weight", ""),
        ("encoder.attn.W_q.weight", "encoder.attn"),
        ("in_proj_weight", ""),
        ("layers.0.self_attn.in_proj_weight", "layers.0.self_attn"),
        ("layers.0.cross.k_proj_weight", "layers.0.cross"),
        ("bert.encoder.layer.3.attention.self.query.weight", "bert.encoder.layer.3.attention"),
        ("layer.3.crossattention.self.key.weight", "layer.3.crossattention"),
    ],
)
def test_the_only_layer_is_found_by_any_of_its_tensors(name: str, layer: str) -> None:
    assert detect(hold(name, "head.weight"), None).layer == layer


def test_families_do_not_claim_the_layers_of_others() -> None:
    names = ("a.W_q.weight", "b.in_proj_weight", "c.self.query.weight", "d.fc_out.weight")
    found = find_layers(hold(*names))
    assert [one.layer for one in found] == ["a", "b", "c"]
    assert tuple(one.family for one in found) == FAMILIES


@pytest.mark.parametrize(
    ("wanted", "layer"),
    [
        ("decoder.layers.10.self_attn", "decoder.layers.10.self_attn"),
        ("decoder.layers.1", "decoder.layers.1.self_attn"),
        ("decoder.layers.1.", "decoder.layers.1.self_attn"),
    ],
)
def test_a_layer_is_chosen_by_its_prefix_or_by_one_above_it(wanted: str, layer: str) -> None:
    assert detect(hold(*DECODER), wanted).layer == layer


def test_the_root_of_a_file_is_chosen_by_an_empty_prefix() -> None:
    assert detect(hold("in_proj_weight", "a.in_proj_weight"), "").layer == ""


def test_several_layers_are_listed_in_counting_order() -> None:
    assert refusal_of(hold(*DECODER), None) == (
        "'x.pt' holds 4 attention layers, expected --layer with one of "
        "'decoder.layers.0.multihead_attn', 'decoder.layers.0.self_attn', "
        "'decoder.layers.1.self_attn', 'decoder.layers.10.self_attn'"
    )


def test_several_layers_below_a_prefix_are_listed() -> None:
    assert refusal_of(hold(*DECODER), "decoder.layers.0") == (
        "'x.pt' holds 2 attention layers at 'decoder.layers.0', expected --layer with one of "
        "'decoder.layers.0.multihead_attn', 'decoder.layers.0.self_attn'"
    )


def test_a_prefix_without_a_layer_is_answered_with_those_that_have_one() -> None:
    assert refusal_of(hold("a.1.W_q.weight", "a.12.W_q.weight"), "a.2") == (
        "'x.pt' holds 0 attention layers at 'a.2', expected --layer with one of 'a.1', 'a.12'"
    )


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        (("b.q_proj.weight", "a.weight"), "'a.weight', 'b.q_proj.weight'"),
        (("new\nline",), "'new\\nline'"),
        ((), "nothing"),
    ],
)
def test_a_file_of_an_unknown_family_is_told_the_known_ones(
    names: tuple[str, ...], shown: str
) -> None:
    assert refusal_of(hold(*names), None) == (
        f"'x.pt' holds no attention layer of a known family, expected one of: {KNOWN}; it holds "
        f"{shown}"
    )


@given(st.lists(st.text("ab.0", max_size=5)), st.text("ab.0", max_size=3))
def test_a_prefix_and_the_ending_make_the_name_again(starts: list[str], ending: str) -> None:
    names = [f"{start}.{ending}" for start in starts] + [ending]
    found = find_prefixes(names, ending)
    assert found >= {*starts, ""}
    assert all(prefix == "" or f"{prefix}.{ending}" in names for prefix in found)
