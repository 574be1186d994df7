"""Small vision transformers of timm, under whose names DINO's and DINOv2's checkpoints are too."""

from typing import Any

from torch import Tensor

from tests.families.network import Answer, Attend, D, H, Network, randomize, save_state
from tests.families.torchvision_operators import define_operators


def create(name: str, **settings: Any) -> Any:
    """A network of timm."""
    define_operators()
    import timm

    network: Any = timm.create_model(name, **settings)
    return network


def ask_timm(layer: Any) -> Attend:
    """The layer with its own softmax, whose weights pass through its dropout."""
    layer.fused_attn = False

    def attend(query: Tensor, _: Tensor, visible: Tensor) -> Answer:
        passed: list[Tensor] = []
        hook = layer.attn_drop.register_forward_hook(lambda *call: passed.append(call[2]))
        output = layer(query, attn_mask=visible)
        hook.remove()
        return output, passed[0]

    return attend


def build(name: str, **sizes: Any) -> Network:
    """A network with timm's ``config.json``."""
    sizes = {"img_size": 32, "depth": 1, "embed_dim": D, "num_heads": H} | sizes
    network = create(name, **sizes)
    randomize(network)
    config = {"architecture": name, "num_classes": 1000}
    layers = {"blocks.0.attn": ask_timm(network.blocks[0].attn)}
    return Network(save_state(network.state_dict(), config), layers, {}, H)


NETWORKS = {
    "timm ViT": lambda: build("vit_tiny_patch16_224"),
    "timm ViT without biases": lambda: build("vit_tiny_patch16_224", qkv_bias=False),
    "timm DINO": lambda: build("vit_small_patch16_224.dino"),
}
