"""docs/scale.md predicts what its own rates predict, and names what is there."""

import re
from typing import Final

import pytest

from benchmarks.scale.cost import Cost, Size
from benchmarks.scale.queue import Replica
from benchmarks.scale.workers import list_cases
from tests.docs.markdown import ROOT, read_blocks, read_table

PAGE: Final = (ROOT / "docs" / "scale.md").read_text()
RATES: Final = read_table(PAGE, "work")
COSTS: Final = read_table(PAGE, "B", "L", "D")
WAITS: Final = read_table(PAGE, "cores", "B x L, D")
TIMES: Final = read_table(PAGE, "load of the cores")
NEEDS: Final = read_table(PAGE, "B x L, D", "ms of a core")
WORKERS: Final = read_table(PAGE, "requests", "connections")
COST: Final = Cost({row[0].strip("`"): float(row[2]) for row in RATES})


def test_every_kind_of_work_has_a_rate() -> None:
    assert COST.rates_ms.keys() == Size(2, 3, 5).work.keys()


@pytest.mark.parametrize("row", COSTS, ids=" ".join)
def test_a_cost_is_predicted_by_the_rates_of_the_page(row: list[str]) -> None:
    size = Size(*map(int, row[:3]))
    measured_ms, predicted_ms = map(float, row[3:5])
    assert predicted_ms == pytest.approx(COST.predict_ms(size), abs=0.005)
    assert abs(predicted_ms / measured_ms - 1) < 0.19


@pytest.mark.parametrize("row", NEEDS, ids=lambda row: row[0])
def test_the_replicas_are_those_that_the_queue_needs(row: list[str]) -> None:
    numbers = [int(number) for number in re.findall(r"\d+", row[0])]
    request_ms = COST.predict_ms(Size(*numbers))
    assert float(row[1]) == pytest.approx(request_ms, abs=0.05)
    replica = Replica(cores=2, request_ms=request_ms)
    limit_ms = int(row[2]) / 2  # the other half is left for what the queue does not know
    counts = [replica.count(per_second, limit_ms) for per_second in (50, 200, 1000)]
    assert [int(cell) for cell in row[3:]] == counts


@pytest.mark.parametrize("row", TIMES, ids=lambda row: row[0])
def test_the_times_are_those_of_the_queue(row: list[str]) -> None:
    load = int(row[0].split()[0]) / 100
    for cores, cell in zip((1, 2, 4, 8), row[1:], strict=True):
        replica = Replica(cores, request_ms=1)
        assert float(cell) == pytest.approx(replica.predict_ms(load * cores * 1000), abs=0.05)


def test_what_was_measured_is_within_the_factors_that_the_page_gives() -> None:
    ratios = [float(measured) / float(predicted) for *_, measured, predicted in WAITS]
    low, high = re.findall(r"([\d.]+) to ([\d.]+) times as much was measured", PAGE)[0]
    assert min(ratios) == pytest.approx(float(low), abs=0.05)
    assert max(ratios) == pytest.approx(float(high), abs=0.05)


def test_workers_were_measured_with_all_that_the_benchmark_asks() -> None:
    cases = [[case.label, str(case.connections)] for case in list_cases()]
    assert [row[:2] for row in WORKERS] == cases


@pytest.mark.parametrize("block", read_blocks(PAGE, "python"))
def test_the_example_says_what_is_so(block: str) -> None:
    exec(block, {})  # noqa: S102 - our own page


def test_every_file_that_is_named_is_there() -> None:
    named = set(re.findall(r"`((?:deploy|examples)/[\w./-]+)`|\(\.\./([\w./]+)\)", PAGE))
    assert len(named) > 3
    assert all((ROOT / (code or link)).exists() for code, link in named)
