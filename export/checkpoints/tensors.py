"""The tensors of a checkpoint, read one at a time as float32 arrays that are known to be sound."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from export.errors import CheckpointError

if TYPE_CHECKING:
    import torch

# Those whose numbers mean what they say; int8 and float8 need a scale from somewhere else.
DATATYPES = ("float16", "bfloat16", "float32", "float64")


@dataclass(frozen=True, slots=True)
class Tensors:
    """The tensors of one file, or those of it below one prefix.

    Attributes:
        file: name of the file, for messages.
        names: of the tensors, in full.
        load: gives a tensor by its full name.
        prefix: put before every name that is asked for: "" or a layer and a dot.
    """

    file: str
    names: frozenset[str]
    load: Callable[[str], "torch.Tensor"]
    prefix: str = ""

    def below(self, layer: str) -> "Tensors":
        """The same tensors, asked for by their names within `layer`; "" is the whole file."""
        return replace(self, prefix=f"{layer}." if layer else "")

    def list_names(self) -> list[str]:
        """Names within the layer, sorted."""
        below = (name for name in self.names if name.startswith(self.prefix))
        return sorted(name.removeprefix(self.prefix) for name in below)

    def __contains__(self, name: str) -> bool:
        return self.prefix + name in self.names

    def read_shape(self, name: str) -> tuple[int, int]:
        """Rows and columns of a matrix.

        Raises:
            CheckpointError: if it is missing or has another number of axes.
        """
        shape = list(self._load(name).shape)
        if len(shape) != 2:
            raise CheckpointError(f"{self._call(name)} has shape {shape}, expected two axes")
        return shape[0], shape[1]

    def read(self, name: str, *shape: int) -> NDArray[np.float32]:
        """One tensor in float32.

        Raises:
            CheckpointError: if it is missing, has another shape, a datatype that is none of
                `DATATYPES`, or holds NaN or an infinity.
        """
        tensor = self._load(name)
        if tuple(tensor.shape) != shape:
            raise CheckpointError(
                f"{self._call(name)} has shape {list(tensor.shape)}, expected {list(shape)}"
            )
        array = self._to_float32(tensor, name)
        unsound = np.argwhere(~np.isfinite(array))
        if len(unsound):
            raise CheckpointError(
                f"{self._call(name)} holds {array[tuple(unsound[0])]} at {unsound[0].tolist()}, "
                "expected finite float32 numbers; take a checkpoint from before the training "
                "diverged"
            )
        return array

    def read_or_zeros(self, name: str, *shape: int) -> NDArray[np.float32]:
        """One tensor in float32; zeros where the file has none: a layer without biases.

        Raises:
            CheckpointError: as `read`, but not if it is missing.
        """
        return self.read(name, *shape) if name in self else np.zeros(shape, np.float32)

    def _load(self, name: str) -> "torch.Tensor":
        if name not in self:
            raise CheckpointError(
                f"{self._call(name)} is missing; save the whole state_dict of the layer"
            )
        return self.load(self.prefix + name)

    def _to_float32(self, tensor: "torch.Tensor", name: str) -> NDArray[np.float32]:
        import torch

        datatype = str(tensor.dtype).removeprefix("torch.")
        if datatype not in DATATYPES:
            raise CheckpointError(
                f"{self._call(name)} has datatype {datatype}, expected one of "
                f"{', '.join(DATATYPES)}; save the layer before it is quantized"
            )
        if tensor.layout != torch.strided or tensor.is_meta:
            kind = "has no data" if tensor.is_meta else "is sparse"
            raise CheckpointError(
                f"{self._call(name)} {kind}, expected a dense tensor; save the layer with its "
                "tensors on the CPU and dense"
            )
        array: NDArray[np.float32] = tensor.detach().to("cpu", torch.float32).numpy()
        return array

    def _call(self, name: str) -> str:
        return f"tensor {self.prefix + name!r} of {self.file!r}"
