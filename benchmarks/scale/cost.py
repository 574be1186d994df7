"""The processor time of a request as a sum of what it does, and the rates that were measured."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

GIGA = 1e9
MEGA = 1e6
FLOAT_BYTES = 4
PROJECTIONS = 4  # of query, key, value and output


@dataclass(frozen=True)
class Size:
    """The size of a request without weights, its query standing in for key and value.

    Attributes:
        batch_size: B.
        length: L, and S.
        d_model: D; the rates are measured at a d_k of 64, so of D / 64 heads.
    """

    batch_size: int
    length: int
    d_model: int

    @property
    def work(self) -> dict[str, float]:
        """How much there is of each kind of work.

        A product of [m,k] and [k,n] takes 2mkn operations: B·L·D·D for each projection, and for
        all heads together B·L·L·D for the scores and as much for their sum over the values.
        """
        tokens = self.batch_size * self.length
        return {
            "request": 1,
            "megabyte": 2 * FLOAT_BYTES * tokens * self.d_model / MEGA,  # query in, output out
            "weights_megabyte": PROJECTIONS * FLOAT_BYTES * self.d_model**2 / MEGA,
            "projection_gigaflop": 2 * PROJECTIONS * tokens * self.d_model**2 / GIGA,
            "score_gigaflop": 2 * 2 * tokens * self.length * self.d_model / GIGA,
        }


@dataclass(frozen=True)
class Cost:
    """Milliseconds of one core for each unit of `Size.work`."""

    rates_ms: Mapping[str, float]

    @classmethod
    def fit(cls, measured_ms: Mapping[Size, float]) -> Self:
        """The rates that fit best, as factors: 10 % off counts the same at 1 ms and at 100 ms.

        A kind of work whose rate would come out negative is left out, for it cannot be told apart
        from the others.

        Args:
            measured_ms: processor time of requests of at least five sizes.
        """
        names = list(next(iter(measured_ms)).work)
        while True:
            rates = solve(names, measured_ms)
            worst = min(rates, key=rates.__getitem__)
            if rates[worst] >= 0:
                return cls(rates)
            names.remove(worst)

    def predict_ms(self, size: Size) -> float:
        """Processor time of a request."""
        work = size.work
        return sum(rate * work[name] for name, rate in self.rates_ms.items())


def solve(names: Sequence[str], measured_ms: Mapping[Size, float]) -> dict[str, float]:
    """Least squares of the ratio of predicted to measured time."""
    rows = [[size.work[name] / ms for name in names] for size, ms in measured_ms.items()]
    rates, *_ = np.linalg.lstsq(np.array(rows), np.ones(len(rows)), rcond=None)
    return dict(zip(names, rates.tolist(), strict=True))
