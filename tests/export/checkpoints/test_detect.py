"""Which layer of a checkpoint is meant."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from export.checkpoints.detect import FAMILIES, detect, find_layers
from export.checkpoints.family import find_prefixes
from export.checkpoints.tensors import Tensors, hold_tensors
from export.errors import CheckpointError

KNOWN = (
    "MultiHeadAttention (W_q, W_k, W_v, fc_out or W_o); "
    "Annotated Transformer (linears.0, .1, .2, .3); "
    "OpenAI CLIP, open_clip (resblocks.*.attn.in_proj_weight); "
    "nn.MultiheadAttention (in_proj_weight, out_proj); "
    "BERT, RoBERTa, ELECTRA, MiniLM (self.query, self.key, self.value, output.dense); "
    "ViT, DeiT, DINOv2 (attention.query, attention.key, attention.value, output.dense); "
    "DistilBERT (q_lin, k_lin, v_lin, out_lin); "
    "CLIP, BART, Whisper, OPT, Wav2Vec2 (q_proj, k_proj, v_proj, out_proj); "
    "GPT-2 (c_attn, c_proj, in cross attention q_attn); "
    "timm ViT, DeiT, DINO (attn.qkv, attn.proj)"
)
DECODER = (
    "decoder.layers.0.self_attn.in_proj_weight",
    "decoder.layers.0.multihead_attn.in_proj_weight",
    "decoder.layers.10.self_attn.in_proj_weight",
    "decoder.layers.1.self_attn.in_proj_weight",
    "decoder.layers.1.norm1.weight",
)
RESBLOCK = "visual.transformer.resblocks.3.attn"


def hold(*names: str) -> Tensors:
    return hold_tensors("x.pt", dict.fromkeys(names, torch.ones(1)))


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
        ("linears.3.weight", ""),
        ("decoder.layers.0.src_attn.linears.2.weight", "decoder.layers.0.src_attn"),
        ("visual.transformer.resblocks.3.attn.in_proj_weight", RESBLOCK),
        ("vit.encoder.layer.3.attention.attention.key.weight", "vit.encoder.layer.3.attention"),
        ("attention.attention.query.weight", "attention"),
        ("transformer.layer.3.attention.v_lin.weight", "transformer.layer.3.attention"),
        ("decoder.layers.3.encoder_attn.k_proj.weight", "decoder.layers.3.encoder_attn"),
        ("q_proj.weight", ""),
        ("transformer.h.3.attn.c_attn.weight", "transformer.h.3.attn"),
        ("h.3.crossattention.c_attn.weight", "h.3.crossattention"),
        ("blocks.3.attn.qkv.weight", "blocks.3.attn"),
        ("qkv.weight", ""),
    ],
)
def test_the_only_layer_is_found_by_any_of_its_tensors(name: str, layer: str) -> None:
    assert detect(hold(name, "head.weight"), None).layer == layer


def test_families_do_not_claim_the_layers_of_others() -> None:
    layers = {
        "a": "W_q.weight",
        "b.attn": "linears.0.weight",
        "c.resblocks.0.attn": "in_proj_weight",
        "d": "in_proj_weight",
        "e": "self.query.weight",
        "f.attention": "attention.query.weight",
        "g": "q_lin.weight",
        "h.self_attn": "q_proj.weight",
        "i": "c_attn.weight",
        "j.attn": "qkv.weight",
    }
    names = [f"{layer}.{name}" for layer, name in layers.items()]
    found = find_layers(hold(*names, "k.fc_out.weight", "k.linears.0.weight", "k.mlp.qkv.weight"))
    assert [one.layer for one in found] == list(layers)
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
        (("b.fc_out.weight", "a.weight"), "'a.weight', 'b.fc_out.weight'"),
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
