"""Every size with every hiding, and what the formula says of it in float64."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from tempfile import TemporaryFile, gettempdir

import numpy as np
from numpy.typing import NDArray

from export.errors import ExportError
from export.hidings import SIZES, Array, Hiding, Sizes, draw_hidings, draw_tokens
from model.contract import KEY, OUTPUT, QUERY, WEIGHTS, AttentionSpec, Causal, Precision
from model.reference import attend, bound_scores
from model.weights import Weights


@dataclass(frozen=True, slots=True)
class Case:
    """One run of a graph.

    Attributes:
        sizes: as `hidings.SIZE_NAMES` names them.
        tokens: query, key and value.
        hiding: which keys are hidden.
        expected: in float64, the output ``[B,L,D]`` and the weights ``[B,H,L,S]``.
        score_bound: what no score exceeds before anything is added to it.
        precision: of the graphs, which says how close they must come.
    """

    sizes: Sizes
    tokens: dict[str, Array]
    hiding: Hiding
    expected: dict[str, NDArray[np.float64]]
    score_bound: float
    precision: Precision = "fp32"


class ExpectedCases:
    """All cases of one layer with what the reference computed, once for all its graphs.

    That is kept in a file without a name: an open graph has a copy of the weights, and for a large
    layer the two together would be too much to hold.

    Args:
        weights: of the layer; they are not kept.

    Raises:
        ExportError: if there is no room for the file.
    """

    def __init__(self, weights: Weights) -> None:
        self.spec = weights.spec
        self._file = TemporaryFile()  # noqa: SIM115 - closed by `close`
        self._score_bounds: dict[Sizes, float] = {}
        try:
            self._write(weights)
        except OSError as error:
            raise ExportError(
                f"'{gettempdir()}' has no room for what the reference computes "
                f"({error.strerror}); make room or set TMPDIR to another directory"
            ) from None

    def _write(self, weights: Weights) -> None:
        for case in compute_cases(weights, SIZES):
            self._score_bounds[case.sizes] = case.score_bound
            self._file.writelines(array.data for array in case.expected.values())
            del case  # before the next one is computed
        self._file.flush()

    def close(self) -> None:
        """Let the file go."""
        self._file.close()

    def __iter__(self) -> Iterator[Case]:
        self._file.seek(0)
        for sizes, tokens, hiding in draw_questions(self.spec, SIZES):
            batch, length, keys = sizes
            shapes = {
                OUTPUT: (batch, length, self.spec.d_model),
                WEIGHTS: (batch, self.spec.num_heads, length, keys),
            }
            # Not held here, where it would be beside the next one.
            yield Case(
                sizes,
                tokens,
                hiding,
                {name: self._read(*shape) for name, shape in shapes.items()},
                self._score_bounds[sizes],
                self.spec.precision,
            )

    def _read(self, *shape: int) -> NDArray[np.float64]:
        return np.frombuffer(self._file.read(8 * prod(shape)), np.float64).reshape(shape)


def compute_cases(
    weights: Weights, all_sizes: Sequence[Sizes], causal: Causal = False
) -> Iterator[Case]:
    """Cases of some sizes, as the reference computes them.

    Args:
        weights: of the layer; that it is causal by itself is nothing that its graphs know.
        all_sizes: each comes with every hiding.
        causal: what is hidden besides.
    """
    bounds: dict[Sizes, float] = {}
    for sizes, tokens, hiding in draw_questions(weights.spec, all_sizes):
        if sizes not in bounds:
            bounds[sizes] = bound_scores(weights, tokens[QUERY], tokens[KEY])
        yield Case(sizes, tokens, hiding, expect(weights, tokens, hiding, causal), bounds[sizes])


def expect(
    weights: Weights, tokens: dict[str, Array], hiding: Hiding, causal: Causal
) -> dict[str, NDArray[np.float64]]:
    """Output and weights of one case, as the reference computes them."""
    found = attend(
        weights,
        **tokens,
        mask=hiding.mask,
        key_mask=hiding.key_mask,
        bias=hiding.bias,
        causal=hiding.causal or causal,
    )
    return dict(zip((OUTPUT, WEIGHTS), found, strict=True))


def draw_questions(
    spec: AttentionSpec, all_sizes: Sequence[Sizes]
) -> Iterator[tuple[Sizes, dict[str, Array], Hiding]]:
    """Sizes, tokens and hiding of every case; the same numbers each time."""
    generator = np.random.default_rng(0)
    for sizes in all_sizes:
        tokens = draw_tokens(generator, spec, *sizes)
        for hiding in draw_hidings(generator, spec, *sizes):
            yield sizes, tokens, hiding
