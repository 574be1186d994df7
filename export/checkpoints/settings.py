"""Refusal of networks whose ``config.json`` tells that their attention is not the formula."""

import re
from collections.abc import Collection, Mapping

from export.checkpoints.config import Config
from export.errors import CheckpointError

# Networks that share the names of others, whose tensors do not show what they do.
UNLIKE = {
    "beit": "may add relative positions to the scores",
    "canine": "attends within windows",
    "codegen": "rotates queries and keys by their positions",
    "data2vec-vision": "may add relative positions to the scores",
    "gpt_bigcode": "shares one head of keys among its queries",
    "gpt_neo": "does not divide its scores by sqrt(d_k)",
    "gptj": "rotates queries and keys by their positions",
    "layoutlmv2": "adds relative positions to the scores",
    "layoutlmv3": "adds relative positions to the scores",
    "led": "attends within windows",
    "lilt": "adds the scores of the layout to those of the text",
    "longformer": "attends within windows",
    "mpnet": "adds relative positions to the scores",
    "nystromformer": "approximates the softmax",
    "roformer": "rotates queries and keys by their positions",
    "wav2vec2-conformer": "tells positions to its scores",
    "wavlm": "adds relative positions to the scores",
}


def check_settings(config: Config, plain: Mapping[str, object]) -> None:
    """Refuse a network with a setting whose attention is not the formula.

    Args:
        config: of the layer.
        plain: under which value it is; an absent setting has that value.

    Raises:
        CheckpointError: naming the setting.
    """
    values = config.read_values()
    for name, value in plain.items():
        if values.get(name, value) != value:
            raise CheckpointError(
                f"config.json says {name} is {values[name]!r}, which the formula does not have; "
                f"expected {value!r}"
            )


def check_model_type(config: Config, known: Collection[str]) -> None:
    """Refuse a network of a type that is not known to be plain: names alone do not tell it.

    Raises:
        CheckpointError: naming the type, and what it does where that is known.
    """
    kind = config.read_values().get("model_type")
    if kind is None or kind in known:
        return
    if isinstance(kind, str) and kind in UNLIKE:
        raise CheckpointError(
            f"config.json says model_type is {kind!r}, which {UNLIKE[kind]}; expected a network "
            "that computes the formula alone"
        )
    raise CheckpointError(
        f"config.json says model_type is {kind!r}, of which it is not known whether it computes "
        f"the formula alone; expected one of {', '.join(known)}; if it does, take model_type out "
        "of config.json"
    )


def check_architecture(config: Config, known: re.Pattern[str]) -> None:
    """Refuse an architecture of timm that is not known to be plain.

    Raises:
        CheckpointError: naming it.
    """
    name = config.read_values().get("architecture")
    if name is not None and not known.match(str(name)):
        raise CheckpointError(
            f"config.json says architecture is {name!r}, of which it is not known whether it "
            "computes the formula alone, as vit_base_patch16_224 does; if it does, take "
            "architecture out of config.json"
        )
