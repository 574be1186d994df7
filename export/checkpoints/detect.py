"""Which attention layers a checkpoint holds, and which of them is meant."""

from dataclasses import dataclass

from export.checkpoints.bart import BART
from export.checkpoints.bert import BERT
from export.checkpoints.distilbert import DISTILBERT
from export.checkpoints.family import Family
from export.checkpoints.gpt2 import GPT2
from export.checkpoints.linears import LINEARS
from export.checkpoints.openai_clip import OPENAI_CLIP
from export.checkpoints.own import OWN
from export.checkpoints.refused import REFUSED
from export.checkpoints.tensors import Tensors
from export.checkpoints.timm import TIMM
from export.checkpoints.torch_layer import TORCH_LAYER
from export.checkpoints.vit import VIT
from export.errors import CheckpointError

FAMILIES = (OWN, LINEARS, OPENAI_CLIP, TORCH_LAYER, BERT, VIT, DISTILBERT, BART, GPT2, TIMM)
"""Those that are read. A layer that several would claim is of the first."""


@dataclass(frozen=True, slots=True)
class Found:
    """One attention layer of a checkpoint."""

    family: Family
    layer: str


def detect(tensors: Tensors, wanted: str | None) -> Found:
    """The one layer at or below the prefix `wanted`; the only one of the file if that is None.

    Raises:
        CheckpointError: if there is none, or more than one: then all are listed.
    """
    found = find_layers(tensors)
    if not found:
        known = "; ".join(map(str, FAMILIES))
        raise CheckpointError(
            f"{tensors.file!r} holds no attention layer of a known family, expected one of: "
            f"{known}; it holds {list_names(sorted(tensors.names)[:8])}"
        )
    chosen = found if wanted is None else select(found, wanted.strip("."))
    if len(chosen) == 1:
        return chosen[0]
    place = "" if wanted is None else f" at {wanted!r}"
    raise CheckpointError(
        f"{tensors.file!r} holds {len(chosen)} attention layers{place}, expected --layer with "
        f"one of {list_names([one.layer for one in chosen or found])}"
    )


def find_layers(tensors: Tensors) -> list[Found]:
    """All layers of all families, in the order in which a person counts them.

    Those of `REFUSED` are among them: reading one says why it is refused.
    """
    found: dict[str, Found] = {}
    for family in (*REFUSED, *FAMILIES):
        for layer in family.find(tensors.names):
            found.setdefault(layer, Found(family, layer))
    return sorted(found.values(), key=lambda one: counting_order(one.layer))


def counting_order(layer: str) -> list[tuple[int, str]]:
    """A key that sorts ``layer.9`` before ``layer.10``."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in layer.split(".")]


def select(found: list[Found], wanted: str) -> list[Found]:
    """The layer at `wanted`; where there is none, those below it."""
    exact = [one for one in found if one.layer == wanted]
    return exact or [one for one in found if one.layer.startswith(f"{wanted}.")]


def list_names(names: list[str]) -> str:
    """Quoted, with commas; "nothing" for none."""
    return ", ".join(map(repr, names)) or "nothing"
