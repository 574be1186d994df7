"""The trained numbers of one attention layer, as numpy arrays, whatever they came from."""

from dataclasses import dataclass
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from model.contract import AttentionSpec


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """Four linear maps, each stored as ``nn.Linear`` stores it: ``y = x @ W.T + b``.

    Attributes:
        spec: the sizes.
        W_q, W_k, W_v, fc_out: ``[D, D]``, ``[D, kdim]``, ``[D, vdim]``, ``[D, D]``.
        b_q, b_k, b_v, b_out: ``[D]`` each; zeros where the layer has no bias.

    Raises:
        ValueError: if an array does not have the shape that `spec` asks for, or holds NaN or
            an infinity.
    """

    spec: AttentionSpec
    W_q: NDArray[np.float32]
    b_q: NDArray[np.float32]
    W_k: NDArray[np.float32]
    b_k: NDArray[np.float32]
    W_v: NDArray[np.float32]
    b_v: NDArray[np.float32]
    fc_out: NDArray[np.float32]
    b_out: NDArray[np.float32]

    def __post_init__(self) -> None:
        for name, shape in expected_shapes(self.spec).items():
            array = getattr(self, name)
            if array.shape != shape:
                raise ValueError(
                    f"weight {name} has shape {list(array.shape)}, expected {list(shape)}"
                )
            if not np.isfinite(array).all():
                raise ValueError(f"weight {name} holds NaN or an infinity")

    @classmethod
    def random(cls, spec: AttentionSpec, seed: int) -> Self:
        """Draw weights from the uniform distribution that ``nn.Linear`` starts from.

        The bound is 1/sqrt(inputs of the map). The same `seed` gives the same numbers on every
        machine, so a test can build the weights of the demo model without reading its files.
        """
        generator = np.random.default_rng(seed)
        arrays = {}
        for name, shape in expected_shapes(spec).items():
            inputs = shape[1] if len(shape) == 2 else spec.d_model
            bound = 1 / np.sqrt(inputs)
            arrays[name] = generator.uniform(-bound, bound, shape).astype(np.float32)
        return cls(spec, **arrays)


def expected_shapes(spec: AttentionSpec) -> dict[str, tuple[int, ...]]:
    """Shape of each array of `Weights`, by attribute name."""
    d_model = spec.d_model
    return {
        "W_q": (d_model, d_model),
        "b_q": (d_model,),
        "W_k": (d_model, spec.kdim),
        "b_k": (d_model,),
        "W_v": (d_model, spec.vdim),
        "b_v": (d_model,),
        "fc_out": (d_model, d_model),
        "b_out": (d_model,),
    }


STATE_NAMES: Final = {
    "W_q.weight": "W_q",
    "W_q.bias": "b_q",
    "W_k.weight": "W_k",
    "W_k.bias": "b_k",
    "W_v.weight": "W_v",
    "W_v.bias": "b_v",
    "fc_out.weight": "fc_out",
    "fc_out.bias": "b_out",
}
"""Names in a state_dict of `MultiHeadAttention`, and the attributes of `Weights` they fill."""
