"""What attention layers a checkpoint holds, told without reading their numbers."""

from dataclasses import dataclass, replace
from math import prod

from export.checkpoints.checkpoint import Checkpoint
from export.checkpoints.detect import Found, find_layers
from export.errors import CheckpointError
from model.contract import AttentionSpec


@dataclass(frozen=True, slots=True)
class LayerReport:
    """One layer, as `limelight-export inspect` shows it.

    Attributes:
        number: in counting order from 0, as in the names of models that ``--layer all`` makes.
        name: the layer's prefix.
        family: of checkpoints.
        d_model: D; None where it cannot be told.
        num_heads: H; None where it cannot be told.
        kdim: width of key tokens, or None.
        vdim: width of value tokens, or None.
        parameters: how many numbers its tensors have.
        datatype: theirs; several with "+" between them.
        importable: whether the layer can be exported.
        reason: why not; "" if it can.
    """

    number: int
    name: str
    family: str
    d_model: int | None
    num_heads: int | None
    kdim: int | None
    vdim: int | None
    parameters: int
    datatype: str
    importable: bool
    reason: str


def inspect_layers(checkpoint: Checkpoint) -> list[LayerReport]:
    """Every layer of every family, in counting order."""
    return [
        inspect_layer(checkpoint, number, found)
        for number, found in enumerate(find_layers(checkpoint.tensors))
    ]


def inspect_layer(checkpoint: Checkpoint, number: int, found: Found) -> LayerReport:
    """Try the import of a layer without its numbers."""
    spec, used, reason = try_import(checkpoint, found)
    stored = [checkpoint.tensors.stored[name] for name in used]
    return LayerReport(
        number=number,
        name=found.layer,
        family=found.family.name,
        d_model=spec.d_model if spec else None,
        num_heads=spec.num_heads if spec and not reason else None,
        kdim=spec.kdim if spec else None,
        vdim=spec.vdim if spec else None,
        parameters=sum(prod(tensor.shape) for tensor in stored),
        datatype="+".join(sorted({tensor.datatype for tensor in stored})),
        importable=not reason,
        reason=reason,
    )


def try_import(checkpoint: Checkpoint, found: Found) -> tuple[AttentionSpec | None, list[str], str]:
    """Sizes, names of the tensors, and why the layer cannot be imported; "" if it can.

    Where the number of heads alone is unfit, the widths are told, with one head.
    """
    try:
        return *checkpoint.look_at(found), ""
    except CheckpointError as refusal:
        reason = str(refusal)
    try:
        with_one_head = replace(checkpoint.config, num_heads=1)
        return *replace(checkpoint, config=with_one_head).look_at(found), reason
    except CheckpointError:
        below = checkpoint.tensors.below(found.layer)
        return None, [below.prefix + name for name in below.list_names()], reason
