"""``.safetensors`` files: a header that is read at once, and numbers that are mapped when needed.

https://huggingface.co/docs/safetensors: eight bytes with the length of the header, the header
in JSON, then the numbers. The library checks that the numbers fill the file without a gap.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from export.checkpoints.damage import damaged
from export.checkpoints.tensors import StoredTensor, Tensors

if TYPE_CHECKING:
    import torch

# As the header calls them; others keep their name, and are refused by it where they are used.
DATATYPES = {"F16": "float16", "BF16": "bfloat16", "F32": "float32", "F64": "float64"}


class Header(Protocol):
    """What safetensors tells of a tensor that it has not read."""

    def get_dtype(self) -> str:
        """As the format spells it."""

    def get_shape(self) -> list[int]:
        """The lengths of its axes."""


def open_safetensors(path: Path) -> Tensors:
    """Read the header only.

    Raises:
        CheckpointError: if the file is damaged.
    """
    from safetensors import SafetensorError, safe_open

    try:
        # For numpy, which spares the import of torch until numbers are wanted.
        file: Any = safe_open(path, framework="np")
        names: list[str] = file.keys()
        stored = {name: describe(path, file.get_slice(name), name) for name in names}
    except SafetensorError as error:
        raise damaged(path, error) from None
    return Tensors(path.name, stored)


def describe(path: Path, header: Header, name: str) -> StoredTensor:
    """One tensor, as the header of its file tells it."""
    datatype = header.get_dtype()
    return StoredTensor(
        path.name,
        tuple(header.get_shape()),
        DATATYPES.get(datatype, datatype),
        make_loader(path, name),
    )


def make_loader(path: Path, name: str) -> Callable[[], "torch.Tensor"]:
    """What maps one tensor from the file: pages come into memory as they are touched."""

    def load() -> "torch.Tensor":
        from safetensors import SafetensorError, safe_open

        try:
            # As torch tensors: numpy has no bfloat16.
            with safe_open(path, framework="pt") as file:
                tensor: torch.Tensor = file.get_tensor(name)
        except SafetensorError as error:
            raise damaged(path, error) from None
        return tensor

    return load
