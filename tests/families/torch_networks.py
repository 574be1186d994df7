"""Networks of torch, and of classes that tutorials print."""

import math
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from tests.families.network import Answer, Attend, B, D, H, Network, randomize, save_state

KDIM, VDIM = 8, 10
TRAINING_STEPS = 5


def ask_torch(layer: nn.MultiheadAttention) -> Attend:
    """The layer of torch, in whose masks true means hidden."""

    def attend(query: Tensor, key: Tensor, visible: Tensor) -> Answer:
        _, _, length, keys = visible.shape
        hidden = ~visible.expand(B, layer.num_heads, length, keys).flatten(0, 1)
        tokens = [query, key, key]
        if not layer.batch_first:
            tokens = [tensor.transpose(0, 1) for tensor in tokens]
        output, weights = layer(*tokens, attn_mask=hidden, average_attn_weights=False)
        return output if layer.batch_first else output.transpose(0, 1), weights

    return attend


def build_multihead_attention() -> Network:
    """One layer alone, packed."""
    layer = nn.MultiheadAttention(D, H, batch_first=True)
    randomize(layer)
    return Network(save_state(layer.state_dict()), {}, {"": ask_torch(layer)}, H)


def build_transformer() -> Network:
    """An encoder and a decoder with its cross attention."""
    network = nn.Transformer(
        D, H, 1, 1, dim_feedforward=16, batch_first=True, custom_encoder=make_encoder(1)
    )
    randomize(network)
    (encoder,), (decoder,) = network.encoder.layers, network.decoder.layers
    return Network(
        save_state(network.state_dict()),
        {
            "encoder.layers.0.self_attn": ask_torch(encoder.self_attn),
            "decoder.layers.0.self_attn": ask_torch(decoder.self_attn),
        },
        {"decoder.layers.0.multihead_attn": ask_torch(decoder.multihead_attn)},
        H,
    )


def make_encoder(layers: int) -> nn.TransformerEncoder:
    """An encoder that does not warn of its odd number of heads."""
    layer = nn.TransformerEncoderLayer(D, H, dim_feedforward=16, batch_first=True)
    return nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)


def build_trained_encoder() -> Network:
    """An encoder after some steps of training."""
    torch.manual_seed(5)
    network = make_encoder(2)
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
    tokens, wanted = torch.randn(B, 6, D), torch.randn(B, 6, D)
    before = network.layers[1].self_attn.in_proj_weight.detach().clone()
    for _ in range(TRAINING_STEPS):
        optimizer.zero_grad()
        (network(tokens) - wanted).square().mean().backward()
        optimizer.step()
    assert not torch.equal(before, network.layers[1].self_attn.in_proj_weight)
    network.eval().requires_grad_(False)
    layers = {
        f"layers.{number}.self_attn": ask_torch(layer.self_attn)
        for number, layer in enumerate(network.layers)
    }
    return Network(save_state(network.state_dict()), layers, {}, H)


def build_openai_clip() -> Network:
    """The names of CLIP/clip/model.py, whose layers are torch's, with [L, B, D]."""
    block = nn.Module()
    block.attn = nn.MultiheadAttention(D, H)
    randomize(block)
    prefix = "visual.transformer.resblocks.0"
    state = {f"{prefix}.{name}": tensor for name, tensor in block.state_dict().items()}
    return Network(save_state(state), {f"{prefix}.attn": ask_torch(block.attn)}, {}, H)


class Tutorial(nn.Module):
    """Attention as the Annotated Transformer writes it, with its list of maps or named ones."""

    def __init__(self, names: tuple[str, ...]) -> None:
        super().__init__()
        self.maps = nn.ModuleDict({name: nn.Linear(D, D) for name in names})

    def forward(self, query: Tensor, key: Tensor, visible: Tensor) -> Answer:
        """Scores below -1e9 do not occur."""
        *maps, output = self.maps.values()
        q, k, v = (
            map_(x).view(B, -1, H, D // H).transpose(1, 2)
            for map_, x in zip(maps, (query, key, key), strict=True)
        )
        scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(D // H)
        weights = scores.masked_fill(~visible, -1e9).softmax(dim=-1)
        mixed = torch.matmul(weights, v).transpose(1, 2).contiguous().view(B, -1, D)
        return output(mixed), weights


def build_tutorial(names: Mapping[str, str], prefix: str) -> Network:
    """The class under names of its own, by those of its maps."""
    layer = Tutorial(tuple(names))
    randomize(layer)
    state = {
        f"{prefix}.{names[name]}.{part}": tensor
        for name, map_ in layer.maps.items()
        for part, tensor in map_.state_dict().items()
    }
    return Network(save_state(state), {}, {prefix: layer}, H)


def build_named_maps() -> Network:
    """W_q, W_k, W_v and fc_out."""
    names = {name: name for name in ("W_q", "W_k", "W_v", "fc_out")}
    return build_tutorial(names, "encoder.0.attention")


def build_numbered_maps() -> Network:
    """The Annotated Transformer's cross attention."""
    names = {f"map{number}": f"linears.{number}" for number in range(4)}
    return build_tutorial(names, "decoder.layers.0.src_attn")


NETWORKS = {
    "nn.MultiheadAttention": build_multihead_attention,
    "nn.Transformer": build_transformer,
    "trained nn.TransformerEncoder": build_trained_encoder,
    "OpenAI CLIP": build_openai_clip,
    "W_q": build_named_maps,
    "linears": build_numbered_maps,
}
