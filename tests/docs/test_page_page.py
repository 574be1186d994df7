"""docs/page.md has a row for every gesture of the benchmark."""

from benchmarks.page.__main__ import GESTURES, RATIOS
from tests.docs.markdown import ROOT, read_table

PAGE = (ROOT / "docs" / "page.md").read_text()
ROWS = read_table(PAGE, "pixels", "gesture")


def test_every_gesture_has_its_frames() -> None:
    cells = [tuple(row[:2]) for row in ROWS]
    assert cells == [(f"{ratio}x", gesture) for ratio in RATIOS for gesture in GESTURES]


def test_no_percentile_is_below_its_median() -> None:
    for _, _, before, after, *_ in ROWS:
        for cell in (before, after):
            median_ms, p95_ms = map(float, cell.split(" / "))
            assert median_ms <= p95_ms
