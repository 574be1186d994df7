"""What the tensors of a checkpoint do not tell: the number of heads above all."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from export.errors import CheckpointError
from model.contract import AttentionSpec

HEADS = ("num_attention_heads", "num_heads", "n_head", "n_heads", "nhead")


@dataclass(frozen=True, slots=True)
class Config:
    """The settings of a checkpoint: those of the command line, else ``config.json`` beside it.

    Attributes:
        checkpoint: the file.
        num_heads: H as given by hand.
    """

    checkpoint: Path
    num_heads: int | None = None

    def read_values(self) -> dict[str, Any]:
        """``config.json`` beside the checkpoint; empty where there is none.

        Raises:
            CheckpointError: if it is no JSON object.
        """
        path = self.checkpoint.with_name("config.json")
        if not path.is_file():
            return {}
        try:
            values = json.loads(path.read_bytes())
        except (ValueError, RecursionError) as error:
            raise CheckpointError(f"'{path}' is not JSON ({error}); mend or remove it") from None
        if not isinstance(values, dict):
            raise CheckpointError(f"'{path}' holds no JSON object; mend or remove it")
        return values

    def read_num_heads(self) -> int:
        """H: as given by hand, else as `config.json` says.

        Raises:
            CheckpointError: if neither tells it.
        """
        if self.num_heads is not None:
            return self.num_heads
        values = self.read_values()
        for name in HEADS:
            if name in values:
                return check_heads(name, values[name])
        raise CheckpointError(
            f"the number of heads is not in '{self.checkpoint.name}', and no config.json beside "
            f"it says {', '.join(HEADS[:-1])} or {HEADS[-1]}; give --num-heads"
        )

    def make_spec(self, d_model: int, kdim: int, vdim: int) -> AttentionSpec:
        """The sizes of a layer whose widths are known.

        Raises:
            CheckpointError: if the number of heads is unknown or does not divide `d_model`.
        """
        try:
            return AttentionSpec(d_model, self.read_num_heads(), kdim, vdim)
        except ValueError as error:
            raise CheckpointError(
                f"'{self.checkpoint.name}': {error}; give the --num-heads that the layer was "
                "trained with"
            ) from None


def check_heads(name: str, value: object) -> int:
    """Accept a number of heads from ``config.json``.

    Raises:
        CheckpointError: if it is not a whole number.
    """
    if not isinstance(value, int) or isinstance(value, bool):
        raise CheckpointError(
            f"config.json says {name} is {value!r}, expected a whole number; give --num-heads"
        )
    return value
