"""docs/performance.md has a row for every cell of the benchmark."""

import pytest

from benchmarks.__main__ import CONNECTIONS, LATENCY, THROUGHPUT
from benchmarks.workload import Workload
from tests.docs.markdown import ROOT, read_table

PAGE = (ROOT / "docs" / "performance.md").read_text()
LATENCIES = read_table(
    PAGE,
    "request",
    "onnxruntime alone, ms",
    "served, ms",
    "ratio (quartiles)",
    "server's CPU, ms",
)
SHARES = read_table(
    PAGE,
    "request",
    "connections",
    "onnxruntime alone, 1/s",
    "served, 1/s",
    "share (quartiles)",
)


@pytest.mark.parametrize("workload", LATENCY, ids=lambda workload: workload.label)
def test_every_request_of_one_connection_has_its_ratio(workload: Workload) -> None:
    ((_, raw, served, ratio, _),) = [row for row in LATENCIES if row[0] == workload.label]
    assert float(ratio.split()[0]) == pytest.approx(float(served) / float(raw), rel=0.25)


@pytest.mark.parametrize("connections", CONNECTIONS)
@pytest.mark.parametrize("workload", THROUGHPUT, ids=lambda workload: workload.label)
def test_every_load_has_its_share(workload: Workload, connections: int) -> None:
    wanted = [workload.label, str(connections)]
    ((_, _, raw, served, share),) = [row for row in SHARES if row[:2] == wanted]
    assert float(share.split()[0]) == pytest.approx(float(served) / float(raw), rel=0.25)


def test_nothing_else_is_in_the_tables() -> None:
    assert len(LATENCIES) == len(LATENCY)
    assert len(SHARES) == len(THROUGHPUT) * len(CONNECTIONS)
