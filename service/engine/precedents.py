"""Requests like one that was accepted before, of which only the numbers are looked at.

Whether a model takes a request is decided by the names, shapes and datatypes of its tensors, and by
its parameters; only the numbers of masks are read besides. A client sends the same ones again and
again, and to check them takes a third of what a small request costs beside its run.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from numpy.typing import NDArray

from model.contract import BIAS, KEY, KEY_MASK, MASK, QUERY, VALUE, Causal
from service.engine.mask_inputs import add_axes, to_bool
from service.engine.masks import Hiding
from service.engine.signature import Prepared
from service.engine.slices import Slices
from service.inference import WantedWeights

MAX_PRECEDENTS: Final = 128


@dataclass(frozen=True, slots=True)
class Precedent:
    """What was found out about a request that was accepted.

    Attributes:
        weights: those that are asked for.
        causal: alignment of the causal mask.
        slices: in which it is computed.
        output_bytes: memory that its answer takes.
        operations: what it costs.
    """

    weights: WantedWeights
    causal: Causal
    slices: Slices | None
    output_bytes: int
    operations: int

    @classmethod
    def take(cls, prepared: Prepared) -> Self:
        """That of a request that was accepted."""
        return cls(
            prepared.weights,
            prepared.hiding.causal,
            prepared.slices,
            prepared.output_bytes,
            prepared.operations,
        )

    def prepare(self, tensors: Mapping[str, NDArray[Any]]) -> Prepared:
        """Accept a request of the same names, shapes and datatypes, as `check_request` would.

        Raises:
            InvalidRequestError: if an integer of a mask is neither 0 nor 1.
        """
        query = tensors[QUERY]
        key = tensors.get(KEY, query)
        mask, key_mask, bias = tensors.get(MASK), tensors.get(KEY_MASK), tensors.get(BIAS)
        hiding = Hiding(
            None if mask is None else add_axes(to_bool(MASK, mask)),
            None if key_mask is None else to_bool(KEY_MASK, key_mask),
            None if bias is None else add_axes(bias),
            self.causal,
        )
        return Prepared(
            query,
            key,
            tensors.get(VALUE, key),
            hiding,
            self.weights,
            self.slices,
            self.output_bytes,
            self.operations,
        )


class Precedents:
    """Those of one model, by the likeness of their requests; safe to use from any thread."""

    def __init__(self) -> None:
        self._found: dict[object, Precedent] = {}

    def find(self, likeness: object | None) -> Precedent | None:
        """That of a request which was as like."""
        return self._found.get(likeness)

    def keep(self, likeness: object | None, prepared: Prepared) -> None:
        """Keep what was found out, where a request can be like another."""
        if likeness is None:
            return
        if len(self._found) >= MAX_PRECEDENTS:  # clients that send other shapes each time
            self._found = {}
        self._found[likeness] = Precedent.take(prepared)
