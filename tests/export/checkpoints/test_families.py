"""Each family, from a file to the answers of onnxruntime, against the library it comes from."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn import functional

from export.checkpoints.checkpoint import read_checkpoint
from export.errors import CheckpointError
from export.runtime import Run
from model.attention import MultiHeadAttention
from model.contract import AttentionSpec
from model.weights import Weights, expected_shapes

B, H, L, S, D, KDIM, VDIM = 2, 3, 4, 5, 12, 8, 10
State = dict[str, Tensor]
Open = Callable[[Weights], Run]


def save(state: State, path: Path) -> Path:
    save_file(state, path) if path.suffix == ".safetensors" else torch.save(state, path)
    return path


def run_graph(run: Run, *tokens: Tensor) -> list[Tensor]:
    """Output and weights of the graph, nothing hidden."""
    length, keys = tokens[0].shape[1], tokens[1].shape[1]
    feeds: dict[str, Any] = {
        name: tensor.numpy() for name, tensor in zip(("query", "key", "value"), tokens, strict=True)
    }
    feeds["bias"] = np.zeros((1, 1, length, keys), np.float32)
    return [torch.from_numpy(a) for a in run(["output", "attention_weights"], feeds)]


def draw_tokens(kdim: int = D, vdim: int = D) -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(1)
    return torch.randn(B, L, D), torch.randn(B, S, kdim), torch.randn(B, S, vdim)


def make_torch_layer(**options: Any) -> nn.MultiheadAttention:
    torch.manual_seed(2)
    layer = nn.MultiheadAttention(D, H, batch_first=True, **options)
    for parameter in layer.parameters():
        nn.init.uniform_(parameter, -0.5, 0.5)
    return layer.requires_grad_(False)


def make_bert() -> State:
    """Two layers under the names of BERT, in which kdim and vdim differ as in no BERT."""
    torch.manual_seed(3)
    shapes = {
        "attention.self.query": (D, D),
        "attention.self.key": (D, KDIM),
        "attention.self.value": (D, VDIM),
        "attention.output.dense": (D, D),
        "intermediate.dense": (48, D),
    }
    state = {}
    for layer in (0, 1):
        for name, shape in shapes.items():
            state[f"bert.encoder.layer.{layer}.{name}.weight"] = torch.randn(shape) / 3
            state[f"bert.encoder.layer.{layer}.{name}.bias"] = torch.randn(shape[0])
        state[f"bert.encoder.layer.{layer}.attention.output.LayerNorm.weight"] = torch.randn(D)
    return state


@pytest.mark.parametrize(
    ("options", "suffix"),
    [
        pytest.param({}, ".safetensors", id="one matrix for all three"),
        pytest.param({"kdim": KDIM, "vdim": VDIM}, ".pt", id="three matrices"),
    ],
)
def test_a_layer_of_torch_comes_back_as_torch_computes_it(
    options: dict[str, int], suffix: str, tmp_path: Path, open_weights: Open
) -> None:
    layer, tokens = make_torch_layer(**options), draw_tokens(**options)
    path = save(layer.state_dict(), tmp_path / f"x{suffix}")
    answers = run_graph(open_weights(read_checkpoint(path, num_heads=H)), *tokens)
    for answer, wanted in zip(answers, layer(*tokens, average_attn_weights=False), strict=True):
        torch.testing.assert_close(answer, wanted)


@pytest.mark.parametrize("output", ["fc_out", "W_o"])
def test_our_own_layer_comes_back_as_it_computes_itself(
    output: str, tmp_path: Path, open_weights: Open
) -> None:
    torch.manual_seed(4)
    layer = MultiHeadAttention(D, H, kdim=KDIM, vdim=VDIM).requires_grad_(False)
    tokens = draw_tokens(KDIM, VDIM)
    state = {n.replace("fc_out", output): t for n, t in layer.state_dict().items()}
    path = save({f"net.1.{name}": tensor for name, tensor in state.items()}, tmp_path / "x.bin")
    answers = run_graph(open_weights(read_checkpoint(path, num_heads=H)), *tokens)
    for answer, wanted in zip(answers, layer(*tokens, return_weights=True), strict=True):
        torch.testing.assert_close(answer, wanted)


def test_a_layer_of_bert_comes_back_as_bert_computes_it(tmp_path: Path, open_weights: Open) -> None:
    state, tokens = make_bert(), draw_tokens(KDIM, VDIM)
    path = save(state, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps({"num_attention_heads": H}))
    run = open_weights(read_checkpoint(path, layer="bert.encoder.layer.1"))

    def linear(name: str, x: Tensor) -> Tensor:
        prefix = f"bert.encoder.layer.1.attention.{name}"
        return functional.linear(x, state[f"{prefix}.weight"], state[f"{prefix}.bias"])

    q, k, v = (
        linear(f"self.{name}", x).reshape(B, -1, H, D // H).transpose(1, 2)
        for name, x in zip(("query", "key", "value"), tokens, strict=True)
    )
    mixed = functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
    torch.testing.assert_close(run_graph(run, *tokens)[0], linear("output.dense", mixed))


@pytest.mark.parametrize("suffix", [".safetensors", ".pth"])
@pytest.mark.parametrize("datatype", [torch.bfloat16, torch.float16, torch.float64])
def test_every_datatype_of_a_file_gives_the_weights_that_it_holds(
    datatype: torch.dtype, suffix: str, tmp_path: Path
) -> None:
    layer = MultiHeadAttention(D, H).to(datatype)
    read = read_checkpoint(save(layer.state_dict(), tmp_path / f"x{suffix}"), num_heads=H)
    for name in expected_shapes(read.spec):
        assert np.array_equal(getattr(read, name), getattr(layer.to_weights(), name))


@pytest.mark.parametrize(
    "layer",
    [
        pytest.param(MultiHeadAttention(D, H, kdim=KDIM, vdim=VDIM, bias=False), id="ours"),
        pytest.param(nn.MultiheadAttention(D, H, kdim=KDIM, vdim=VDIM, bias=False), id="torch"),
    ],
)
def test_a_layer_without_biases_has_zeros_for_them(layer: nn.Module, tmp_path: Path) -> None:
    read = read_checkpoint(save(layer.state_dict(), tmp_path / "x.pt"), num_heads=H)
    assert read.spec == AttentionSpec(D, H, KDIM, VDIM)
    assert not any(getattr(read, name).any() for name in ("b_q", "b_k", "b_v", "b_out"))


def test_one_bias_alone_may_be_missing(tmp_path: Path) -> None:
    state = MultiHeadAttention(D, H).state_dict()
    del state["W_k.bias"]
    read = read_checkpoint(save(state, tmp_path / "x.pt"), num_heads=H)
    assert not read.b_k.any()
    assert read.b_q.any()


def drop(*names: str) -> Callable[[State], State]:
    return lambda state: {name: t for name, t in state.items() if name not in names}


def put(name: str, tensor: Tensor) -> Callable[[State], State]:
    return lambda state: state | {name: tensor}


OURS = MultiHeadAttention(D, H, kdim=KDIM, vdim=VDIM).state_dict()
PACKED = nn.MultiheadAttention(D, H).state_dict()
GPT2 = {
    "attn.c_attn.weight": torch.zeros(D, 3 * D),
    "attn.c_proj.weight": torch.zeros(D, D),
    "attn.bias": torch.ones(1, 1, 7, 7),
    "attn.masked_bias": torch.tensor(-1e4),
}
TIMM = {"qkv.weight": torch.zeros(3 * D, D), "proj.weight": torch.zeros(D, D)}
SPLIT = nn.MultiheadAttention(D, H, kdim=KDIM, vdim=VDIM).state_dict()
BERT = {name: tensor for name, tensor in make_bert().items() if ".layer.1." in name}
LAYER = "bert.encoder.layer.1.attention"


def is_missing(name: str) -> str:
    return f"tensor '{name}' of 'x.pt' is missing; save the whole state_dict of the layer"


def has_shape(name: str, came: list[int], expected: list[int]) -> str:
    return f"tensor '{name}' of 'x.pt' has shape {came}, expected {expected}"


@pytest.mark.parametrize(
    ("state", "damage", "message"),
    [
        (OURS, drop("fc_out.weight"), is_missing("fc_out.weight")),
        (OURS, drop("W_q.weight"), is_missing("W_q.weight")),
        (
            OURS,
            put("W_q.weight", torch.zeros(24, D)),
            has_shape("W_q.weight", [24, 12], [12, 12]),
        ),
        (OURS, put("W_k.bias", torch.zeros(KDIM)), has_shape("W_k.bias", [8], [12])),
        (PACKED, drop("out_proj.weight"), is_missing("out_proj.weight")),
        (
            PACKED,
            put("in_proj_weight", torch.zeros(35, D)),
            has_shape("in_proj_weight", [35, 12], [36, 12]),
        ),
        (PACKED, put("in_proj_bias", torch.zeros(D)), has_shape("in_proj_bias", [12], [36])),
        (
            PACKED,
            put("bias_k", torch.zeros(1, 1, D)),
            "tensor 'bias_k' of 'x.pt' comes from add_bias_kv=True, which adds a learned key to "
            "every sequence; expected a layer trained with add_bias_kv=False",
        ),
        (GPT2, drop("attn.c_proj.weight"), is_missing("attn.c_proj.weight")),
        (
            GPT2,
            put("attn.c_attn.weight", torch.zeros(D, 3 * D + 9)),
            has_shape("attn.c_attn.weight", [12, 45], [15, 45]),
        ),
        (GPT2, put("attn.c_attn.bias", torch.zeros(D)), has_shape("attn.c_attn.bias", [12], [36])),
        (
            GPT2,
            put("attn.q_attn.weight", torch.zeros(D, D)),
            has_shape("attn.q_attn.weight", [12, 12], [18, 18]),
        ),
        (TIMM, drop("proj.weight"), is_missing("proj.weight")),
        (
            TIMM,
            put("qkv.weight", torch.zeros(D, D)),
            has_shape("qkv.weight", [12, 12], [36, 12]),
        ),
        (TIMM, put("proj.bias", torch.zeros(D + 1)), has_shape("proj.bias", [13], [12])),
        (SPLIT, drop("q_proj_weight"), is_missing("q_proj_weight")),
        (
            SPLIT,
            put("v_proj_weight", torch.zeros(VDIM, D)),
            has_shape("v_proj_weight", [10, 12], [12, 12]),
        ),
        (
            BERT,
            drop(f"{LAYER}.output.dense.weight"),
            is_missing(f"{LAYER}.output.dense.weight"),
        ),
        (
            BERT,
            put(f"{LAYER}.self.query.weight", torch.zeros(D, 7)),
            has_shape(f"{LAYER}.self.query.weight", [12, 7], [12, 12]),
        ),
    ],
)
def test_a_damaged_layer_is_refused_by_the_tensor_that_is_wrong(
    state: State, damage: Callable[[State], State], message: str, tmp_path: Path
) -> None:
    path = save(damage(state), tmp_path / "x.pt")
    with pytest.raises(CheckpointError) as caught:
        read_checkpoint(path, num_heads=H)
    assert str(caught.value) == message
