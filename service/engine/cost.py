"""How much work a request is, before it is done."""

from typing import TYPE_CHECKING, Final

from model.contract import AttentionSpec
from service.engine.sizes import Sizes

if TYPE_CHECKING:
    from service.engine.signature import Prepared

# A run of so much takes 0.4 ms on one core of 2024, and a switch to a thread and back 0.05 ms.
SMALL_OPERATIONS: Final = 40_000_000
# The softmax of one score takes as long: 1 to 3 ns. Without it 1x1800 with 3 heads of width 2 was
# small, and took 20 ms, or 53 with the largest weights (measured).
SCORE_OPERATIONS: Final = 100


def count_operations(spec: AttentionSpec, sizes: Sizes) -> int:
    """Multiplications of the formula, and for the softmax as many as take its time.

    The four projections, the scores and the weighted sum, B times: ``L D^2`` for the query and for
    the output, ``S D kdim`` and ``S D vdim`` for key and value, ``L S D`` for each product; and the
    softmax of ``H L S`` scores.
    """
    rows, num_heads, length, keys = sizes
    width = spec.d_model
    projected = 2 * length * width + keys * (spec.kdim + spec.vdim)
    softmax = SCORE_OPERATIONS * num_heads * length * keys
    return rows * (width * (projected + 2 * length * keys) + softmax)


def is_small(prepared: "Prepared") -> bool:
    """Whether a request takes less time than would be noticed where it is computed."""
    return prepared.operations <= SMALL_OPERATIONS
