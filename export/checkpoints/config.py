"""What the tensors of a checkpoint do not tell: the number of heads above all."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from export.errors import CheckpointError
from model.contract import AttentionSpec, Causal

HEADS = ("num_attention_heads", "num_heads", "n_head", "n_heads", "nhead")
# Where a network is made of several, its settings of each, by the part of a name that leads to it.
SECTIONS = {
    "text_model": "text_config",
    "vision_model": "vision_config",
    "encoder": "encoder",
    "decoder": "decoder",
}


@dataclass(frozen=True, slots=True)
class Config:
    """The settings of a checkpoint: those of the command line, else ``config.json`` beside it.

    Attributes:
        checkpoint: the file.
        num_heads: H as given by hand.
        layer: prefix of the layer that is meant.
        causal: how the layer hides later keys by itself, as given by hand; None leaves it to the
            family.
    """

    checkpoint: Path
    num_heads: int | None = None
    layer: str = ""
    causal: Causal | None = None

    def at(self, layer: str) -> "Config":
        """The settings of one layer."""
        return replace(self, layer=layer)

    def read_values(self) -> dict[str, Any]:
        """``config.json`` beside the checkpoint; empty where there is none.

        Where it has a section for the part of the network that the layer is in, that one counts.

        Raises:
            CheckpointError: if it is no JSON object.
        """
        values = self.read_file()
        for part in self.layer.split("."):
            section = values.get(SECTIONS.get(part, ""))
            if isinstance(section, dict):
                return values | section
        return values

    def read_file(self) -> dict[str, Any]:
        """All of ``config.json``.

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
        for name in self.list_heads():
            if name in values:
                return check_heads(name, values[name])
        raise CheckpointError(
            f"the number of heads is not in '{self.checkpoint.name}', and no config.json beside "
            f"it says {', '.join(HEADS[:-1])} or {HEADS[-1]}; give --num-heads"
        )

    def list_heads(self) -> list[str]:
        """Names of the setting: encoders and decoders may have one of their own."""
        sides = [part for part in self.layer.split(".") if part in ("encoder", "decoder")]
        return [*(f"{side}_attention_heads" for side in sides), *HEADS]

    def tells_num_heads(self) -> bool:
        """Whether `read_num_heads` can answer."""
        values = {} if self.num_heads is not None else self.read_values()
        return self.num_heads is not None or any(name in values for name in self.list_heads())

    def make_spec(
        self, d_model: int, kdim: int, vdim: int, *, causal: Causal = False
    ) -> AttentionSpec:
        """The sizes of a layer whose widths are known, and how its family hides later keys.

        Raises:
            CheckpointError: if the number of heads is unknown or does not divide `d_model`.
        """
        causal = causal if self.causal is None else self.causal
        try:
            return AttentionSpec(d_model, self.read_num_heads(), kdim, vdim, causal=causal)
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
