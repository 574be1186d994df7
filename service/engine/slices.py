"""The slices in which a long request is computed, so that its score matrix is never whole."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from typing import Final, NamedTuple, Self

from service.engine.sizes import LEAST_ROWS, WHOLE_SCORE_BYTES, Sizes, count_score_bytes

SLICE_SCORE_BYTES: Final = 32 * 2**20
"""Scores of a slice of query rows, or more where D asks for it: see `count_rows`."""


class Slice(NamedTuple):
    """Some items of a request, and some of the query rows of each."""

    items: slice
    rows: slice


WHOLE: Final = Slice(slice(None), slice(None))


@dataclass(frozen=True, slots=True)
class Slices:
    """All slices of a request, in order; each is made when it is asked for.

    Attributes:
        batch_size: B.
        query_length: L.
        items: parts into which B is cut.
        rows: parts into which L is cut.
    """

    batch_size: int
    query_length: int
    items: int
    rows: int

    @classmethod
    def find(cls, sizes: Sizes, d_model: int, max_score_bytes: int) -> Self | None:
        """Cut a request without weights; nothing where it is computed at once.

        Items are computed apart first, which costs nothing; only one whose own scores are too many
        is cut into rows.

        Args:
            sizes: of the request.
            d_model: D.
            max_score_bytes: that a run may hold.
        """
        whole_bytes = min(WHOLE_SCORE_BYTES, max_score_bytes)
        if count_score_bytes(sizes) <= whole_bytes:
            return None
        items = whole_bytes // count_score_bytes(sizes._replace(batch_size=1))
        rows = sizes.query_length if items else count_rows(sizes, d_model, whole_bytes)
        return cls(
            sizes.batch_size,
            sizes.query_length,
            ceil(sizes.batch_size / max(1, items)),
            ceil(sizes.query_length / rows),
        )

    def __len__(self) -> int:
        return self.items * self.rows

    def __getitem__(self, number: int) -> Slice:
        item, row = divmod(number, self.rows)
        return Slice(
            find_part(self.batch_size, self.items, item),
            find_part(self.query_length, self.rows, row),
        )

    def __iter__(self) -> Iterator[Slice]:
        return map(self.__getitem__, range(len(self)))


def count_rows(sizes: Sizes, d_model: int, whole_bytes: int) -> int:
    """Most query rows of a slice.

    The graph projects key and value again in every slice, which takes as many multiplications as
    D rows of scores: with D / 2 rows a slice, 1x4096 takes 1.8 times as long as at once (D = 512,
    H = 8, measured), with D rows 1.35 times, and 45 MiB more.

    Args:
        sizes: of the request.
        d_model: D.
        whole_bytes: of scores that a run may hold.
    """
    row_bytes = count_score_bytes(sizes._replace(batch_size=1, query_length=1))
    rows = max(SLICE_SCORE_BYTES // row_bytes, d_model // 2)
    return max(LEAST_ROWS, min(rows, whole_bytes // row_bytes))


def find_part(length: int, count: int, number: int) -> slice:
    """One of `count` parts of an axis, none of them more than 1 longer than another."""
    return slice(length * number // count, length * (number + 1) // count)
