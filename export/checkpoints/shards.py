"""Checkpoints in several ``.safetensors`` files, with an index of which tensor is in which.

The index, ``model.safetensors.index.json``, is what transformers writes: an object whose
``weight_map`` gives for each tensor the name of a file beside the index.
"""

import json
from pathlib import Path
from typing import Any

from export.checkpoints.places import SAFETENSORS, say_why_absent
from export.checkpoints.safetensors_file import open_safetensors
from export.checkpoints.tensors import StoredTensor, Tensors
from export.errors import CheckpointError

# A thousand times that of a large network; what is longer is no index.
MAX_INDEX_BYTES = 64 << 20


def open_shards(index: Path) -> Tensors:
    """Read the index and the headers of the shards that it names.

    Raises:
        CheckpointError: if the index is damaged or names a shard that is missing, outside of its
            directory, damaged, or without a tensor that the index says it has.
    """
    places = read_index(index)
    shards = {name: open_shard(index, name) for name in sorted(set(places.values()))}
    return Tensors(
        index.name,
        {name: find_tensor(index, shards[shard], name) for name, shard in places.items()},
    )


def read_index(index: Path) -> dict[str, str]:
    """The name of the shard of each tensor.

    Raises:
        CheckpointError: if it is no such index.
    """
    if index.stat().st_size > MAX_INDEX_BYTES:
        raise unfit(index, f"has more than {MAX_INDEX_BYTES} bytes")
    try:
        content = json.loads(index.read_bytes(), object_pairs_hook=make_object)
    except (ValueError, RecursionError) as error:
        raise unfit(index, f"is not JSON ({error})") from None
    places = content.get("weight_map") if isinstance(content, dict) else None
    if not isinstance(places, dict):
        raise unfit(index, "has no object 'weight_map'")
    for name, shard in places.items():
        check_shard_name(index, name, shard)
    return places


def make_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose members have different names.

    Raises:
        ValueError: naming one that comes twice.
    """
    members: dict[str, Any] = {}
    for name, value in pairs:
        if name in members:
            raise ValueError(f"{name!r} comes twice")
        members[name] = value
    return members


def check_shard_name(index: Path, name: str, shard: object) -> None:
    """Accept the name of a file beside the index, and no path that leads elsewhere.

    Raises:
        CheckpointError: naming the tensor.
    """
    plain = isinstance(shard, str) and shard.isprintable() and not set(shard) & set("/\\:")
    if not (plain and isinstance(shard, str) and shard.endswith(SAFETENSORS)):
        raise unfit(
            index,
            f"puts tensor {name!r} into {shard!r}, which is not the name of a .safetensors file "
            "beside it",
        )


def open_shard(index: Path, name: str) -> Tensors:
    """Open one file that the index names.

    Raises:
        CheckpointError: if it is missing or damaged.
    """
    path = index.with_name(name)
    if not path.is_file():
        raise CheckpointError(
            f"shard '{path}' {say_why_absent(path)}, expected the file that '{index.name}' names; "
            "copy or download the whole directory again"
        )
    return open_safetensors(path)


def find_tensor(index: Path, shard: Tensors, name: str) -> StoredTensor:
    """One tensor in its shard.

    Raises:
        CheckpointError: if it is not there.
    """
    if name not in shard.stored:
        raise CheckpointError(
            f"tensor {name!r} is missing from {shard.file!r}, where '{index}' puts it; copy or "
            "download the whole directory again"
        )
    return shard.stored[name]


def unfit(index: Path, fault: str) -> CheckpointError:
    """The refusal of an index."""
    return CheckpointError(f"index '{index}' {fault}; copy or download it again")
