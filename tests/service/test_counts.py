"""The counts of this process, or of all workers."""

import pytest

from service.counts import Counts
from service.engine.model import Model
from service.metrics import Metrics
from service.statistics import ModelCounts, Statistics
from service.tally import Tally
from service.triton_metrics import Reading


class Others:
    """Workers that have answered 30 requests."""

    def gather(self) -> Tally:
        return Tally([], [Reading(ModelCounts("demo", "1", success_count=30), 0)])


@pytest.fixture
def counts(demo: Model) -> Counts:
    """Of a process that serves the demo, and has refused one request."""
    statistics = Statistics()
    metrics = Metrics("1.2", statistics)
    metrics.count_model(demo)
    metrics.count_error("demo", "1", 503, 100)
    return Counts(metrics, statistics)


async def test_a_process_that_is_alone_reads_its_own(counts: Counts) -> None:
    (counted,) = counts.read_all()
    assert (counted.fail_count, counted.success_count) == (1, 0)
    assert await counts.read("demo", ["1"]) == [counted]
    assert b'outcome="503",version="1"} 1.0' in counts.render()


async def test_a_worker_reads_those_of_all(counts: Counts) -> None:
    counts.peers = Others()
    (counted,) = counts.read_all()
    assert (counted.fail_count, counted.success_count) == (0, 30)
    assert await counts.read("demo", ["1"]) == [counted]
    assert counts.render().startswith(b"# HELP nv_inference_request_success")


async def test_a_version_that_nobody_has_counted_has_zeros(counts: Counts) -> None:
    counts.peers = Others()
    assert await counts.read("demo", ["2"]) == [ModelCounts("demo", "2")]
