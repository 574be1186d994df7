"""What is asked of a model and what it answers, whatever door the request came through."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from numpy.typing import NDArray

Causal = Literal[False, "top_left", "bottom_right"]
WeightsForm = Literal["none", "per_head", "mean"]

CAUSAL_FORMS: Final = ("top_left", "bottom_right")
WEIGHTS_FORMS: Final = ("none", "per_head", "mean")


@dataclass(frozen=True, slots=True)
class Inference:
    """One request to a model.

    Attributes:
        tensors: by the names of the tensor contract, as they came.
        causal: alignment of the causal mask, if one is asked for.
        weights: form in which the attention weights are asked for.
    """

    tensors: Mapping[str, NDArray[Any]]
    causal: Causal = False
    weights: WeightsForm = "none"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a model answered.

    Attributes:
        tensors: ``output`` ``[B, L, D]`` and, where asked for, ``attention_weights``
            ``[B, H, L, S]``, or ``[B, L, S]`` for their mean over the heads.
        graph: name of the graph that ran.
        model: name of the model.
        version: of the model.
        queue_ms: time spent waiting for a thread.
        compute_ms: time spent computing.
    """

    tensors: dict[str, NDArray[Any]]
    graph: str
    model: str
    version: str
    queue_ms: float = field(default=0.0, compare=False)
    compute_ms: float = field(default=0.0, compare=False)

    @property
    def size_bytes(self) -> int:
        """Memory that the tensors take."""
        return sum(array.nbytes for array in self.tensors.values())
