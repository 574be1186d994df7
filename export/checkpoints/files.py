"""Files that hold tensors by name, opened without running anything that is in them."""

import pickle
import re
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from export.checkpoints.tensors import Tensors
from export.errors import CheckpointError

if TYPE_CHECKING:
    import torch

PICKLES = (".pt", ".pth", ".bin")


def open_tensors(path: Path) -> Tensors:
    """Open a checkpoint; its tensors are read when they are asked for.

    Raises:
        CheckpointError: if there is no such file, its kind is unknown, or it is damaged.
        OSError: if the file may not be read.
    """
    expected = "expected a .safetensors, .pt, .pth or .bin file"
    if not path.is_file():
        there = "is a directory" if path.is_dir() else "does not exist"
        raise CheckpointError(f"checkpoint '{path}' {there}, {expected}")
    with path.open("rb"):
        pass  # whatever fails from here on is the content, not the right to read it
    if path.suffix == ".safetensors":
        return open_safetensors(path)
    if path.suffix in PICKLES:
        return open_pickle(path)
    raise CheckpointError(f"checkpoint '{path}' has the suffix {path.suffix!r}, {expected}")


def open_safetensors(path: Path) -> Tensors:
    """Read the header only.

    Raises:
        CheckpointError: if the file is damaged.
    """
    from safetensors import SafetensorError, safe_open

    try:
        # As torch tensors, not numpy arrays: numpy has no bfloat16.
        file: Any = safe_open(path, framework="pt")
        names = frozenset(file.keys())
    except SafetensorError as error:
        raise damaged(path, error) from None

    def load(name: str) -> "torch.Tensor":
        try:
            tensor: torch.Tensor = file.get_tensor(name)
        except SafetensorError as error:
            raise damaged(path, error) from None
        return tensor

    return Tensors(path.name, names, load)


def open_pickle(path: Path) -> Tensors:
    """Load what ``torch.save`` wrote, tensors and plain containers alone.

    Dictionaries in dictionaries are flattened into dotted names.

    Raises:
        CheckpointError: if the file is damaged, or holds objects, which might run code.
    """
    import torch

    try:
        # Mapped, tensors that nobody asks for are not read; only the zip format can be.
        mapped = zipfile.is_zipfile(path)
        loaded = torch.load(path, map_location="cpu", weights_only=True, mmap=mapped)
        tensors = dict(flatten(loaded)) if isinstance(loaded, Mapping) else None
    except pickle.UnpicklingError as error:
        raise refused_object(path, error) from None
    except Exception:  # a damaged pickle may raise anything
        raise damaged(path) from None
    if tensors is None:
        raise CheckpointError(
            f"checkpoint '{path}' holds a {type(loaded).__name__}, expected a dictionary from "
            "names to tensors; save layer.state_dict()"
        )
    return Tensors(path.name, frozenset(tensors), tensors.__getitem__)


def flatten(loaded: Mapping[Any, Any], prefix: str = "") -> Iterator[tuple[str, "torch.Tensor"]]:
    """Dotted names and tensors; what is neither a tensor nor a dictionary is left out."""
    import torch

    for name, value in loaded.items():
        if isinstance(value, torch.Tensor):
            yield f"{prefix}{name}", value
        elif isinstance(value, Mapping):
            yield from flatten(value, f"{prefix}{name}.")


def refused_object(path: Path, error: pickle.UnpicklingError) -> CheckpointError:
    """What to say when torch refused to unpickle: an object, or else a damaged file."""
    name = re.search(r"\bGLOBAL (\w[\w.]*\.\w+)", str(error))
    if name is None:
        return damaged(path)
    return CheckpointError(
        f"checkpoint '{path}' holds the object '{name[1]}', expected tensors alone, because "
        "loading objects would run code from the file; save layer.state_dict(), not the layer"
    )


def damaged(path: Path, reason: object = "not what torch.save writes") -> CheckpointError:
    """What to say of a file that cannot be parsed."""
    return CheckpointError(
        f"checkpoint '{path}' is damaged or cut off ({reason}); copy or download it again"
    )
