"""The tensors of a checkpoint, read one at a time as float32 arrays that are known to be sound."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from export.errors import CheckpointError

if TYPE_CHECKING:
    import torch

# Those whose numbers mean what they say; int8 and float8 need a scale from somewhere else.
DATATYPES = ("float16", "bfloat16", "float32", "float64")


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """What a file tells of one tensor, and the way to its numbers.

    Attributes:
        file: name of the file that holds it.
        shape: as stored.
        datatype: as torch calls it, "bfloat16" for one.
        load: reads the numbers.
        obstacle: why they cannot be read, "is sparse" for one; "" where nothing is in the way.
    """

    file: str
    shape: tuple[int, ...]
    datatype: str
    load: Callable[[], "torch.Tensor"]
    obstacle: str = ""


@dataclass(frozen=True, slots=True)
class Tensors:
    """The tensors of one checkpoint, or those of it below one prefix.

    Attributes:
        file: name of the checkpoint, for messages.
        stored: all its tensors by their names in full.
        prefix: put before every name that is asked for: "" or a layer and a dot.
        with_numbers: whether `read` gives the numbers or, for a look at the layer, zeros.
        used: names in full of those that were read.
    """

    file: str
    stored: Mapping[str, StoredTensor]
    prefix: str = ""
    with_numbers: bool = True
    used: list[str] = field(default_factory=list)

    @property
    def names(self) -> frozenset[str]:
        """Names of all tensors, in full."""
        return frozenset(self.stored)

    def below(self, layer: str) -> "Tensors":
        """The same tensors, asked for by their names within `layer`; "" is the whole file."""
        return replace(self, prefix=f"{layer}." if layer else "")

    def noting_use(self) -> "Tensors":
        """The same tensors with a list of their own of those that are read."""
        return replace(self, used=[])

    def without_numbers(self) -> "Tensors":
        """The same tensors, of which `read` checks all but the numbers and gives zeros."""
        return replace(self, with_numbers=False, used=[])

    def list_names(self) -> list[str]:
        """Names within the layer, sorted."""
        below = (name for name in self.stored if name.startswith(self.prefix))
        return sorted(name.removeprefix(self.prefix) for name in below)

    def __contains__(self, name: str) -> bool:
        return self.prefix + name in self.stored

    def read_shape(self, name: str) -> tuple[int, int]:
        """Rows and columns of a matrix; its numbers are not read.

        Raises:
            CheckpointError: if it is missing or has another number of axes.
        """
        shape = self.list_shape(name)
        if len(shape) != 2:
            raise CheckpointError(f"{self._call(name)} has shape {shape}, expected two axes")
        return shape[0], shape[1]

    def list_shape(self, name: str) -> list[int]:
        """The sizes of all axes; the numbers are not read.

        Raises:
            CheckpointError: if it is missing.
        """
        return list(self._find(name).shape)

    def read(self, name: str, *shape: int) -> NDArray[np.float32]:
        """One tensor in float32.

        Raises:
            CheckpointError: if it is missing, has another shape, a datatype that is none of
                `DATATYPES`, or holds NaN or an infinity.
        """
        tensor = self._find(name)
        if tensor.shape != shape:
            raise CheckpointError(
                f"{self._call(name)} has shape {list(tensor.shape)}, expected {list(shape)}"
            )
        self._check_readable(tensor, name)
        self.used.append(self.prefix + name)
        if not self.with_numbers:
            return np.broadcast_to(np.float32(0), shape)
        return self._load(tensor, name)

    def read_or_zeros(self, name: str, *shape: int) -> NDArray[np.float32]:
        """One tensor in float32; zeros where the file has none: a layer without biases.

        Raises:
            CheckpointError: as `read`, but not if it is missing.
        """
        return self.read(name, *shape) if name in self else np.zeros(shape, np.float32)

    def _find(self, name: str) -> StoredTensor:
        if name not in self:
            raise CheckpointError(
                f"{self._call(name)} is missing; save the whole state_dict of the layer"
            )
        return self.stored[self.prefix + name]

    def _check_readable(self, tensor: StoredTensor, name: str) -> None:
        if tensor.datatype not in DATATYPES:
            raise CheckpointError(
                f"{self._call(name)} has datatype {tensor.datatype}, expected one of "
                f"{', '.join(DATATYPES)}; save the layer before it is quantized"
            )
        if tensor.obstacle:
            raise CheckpointError(
                f"{self._call(name)} {tensor.obstacle}, expected a dense tensor; save the layer "
                "with its tensors on the CPU and dense"
            )

    def _load(self, tensor: StoredTensor, name: str) -> NDArray[np.float32]:
        import torch

        # Half precision becomes float32 exactly; float32 stays where it is, mapped from the file.
        array: NDArray[np.float32] = tensor.load().to(torch.float32).numpy()
        unsound = np.argwhere(~np.isfinite(array))
        if len(unsound):
            raise CheckpointError(
                f"{self._call(name)} holds {array[tuple(unsound[0])]} at {unsound[0].tolist()}, "
                "expected finite float32 numbers; take a checkpoint from before the training "
                "diverged"
            )
        return array

    def _call(self, name: str) -> str:
        found = self.stored.get(self.prefix + name)
        return f"tensor {self.prefix + name!r} of {found.file if found else self.file!r}"


def hold_tensors(file: str, tensors: Mapping[str, "torch.Tensor"]) -> Tensors:
    """Tensors that are in memory already, under the name of a file."""
    return Tensors(
        file,
        {
            name: StoredTensor(
                file,
                tuple(tensor.shape),
                name_datatype(tensor),
                tensor.detach,
                find_obstacle(tensor),
            )
            for name, tensor in tensors.items()
        },
    )


def name_datatype(tensor: "torch.Tensor") -> str:
    """As torch calls it, without "torch." before."""
    return str(tensor.dtype).removeprefix("torch.")


def find_obstacle(tensor: "torch.Tensor") -> str:
    """Why the numbers of a tensor cannot be read as they lie; "" where they can."""
    import torch

    if tensor.is_meta:
        return "has no data"
    return "" if tensor.layout == torch.strided else "is sparse"
