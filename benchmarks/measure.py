"""Raw and served calls in turns: other work on the machine slows both, and their ratio stays."""

import statistics
from collections.abc import Iterable
from dataclasses import dataclass

from benchmarks.client import Connection, run_load
from benchmarks.raw import count_per_second, time_calls
from benchmarks.server import ServerUnderTest
from benchmarks.workload import Raw, Workload, check_answer

RAW_THREADS = 2


@dataclass(frozen=True)
class Cell:
    """Medians over the rounds.

    Attributes:
        label: of the workload.
        connections: requests in flight.
        raw: milliseconds of a run alone; runs per second of two threads where `connections`
            is more than 1.
        served: the same of the server.
        ratio: served / raw, with its quartiles.
        cpu_ms: processor time that the server spends on a request.
    """

    label: str
    connections: int
    raw: float
    served: float
    ratio: tuple[float, float, float]
    cpu_ms: float


def measure_latency(
    server: ServerUnderTest, raw: Raw, workload: Workload, rounds: int, round_s: float
) -> Cell:
    """Time of one request at a time, against one run with one thread."""
    check_answer(server.url, workload, raw)
    connection = Connection(server.url, workload.render(server.url))
    run = raw.prepare(workload)
    pairs, cpu_ms = [], []
    for _ in range(rounds):
        alone_s = statistics.median(time_calls(run, round_s))
        before_s = server.cpu_s
        served_s = time_calls(connection.ask, round_s)
        cpu_ms.append((server.cpu_s - before_s) / len(served_s) * 1000)
        pairs.append((alone_s * 1000, statistics.median(served_s) * 1000))
    connection.close()
    return summarize(workload.label, 1, pairs, cpu_ms)


def measure_throughput(
    server: ServerUnderTest,
    raw: Raw,
    workload: Workload,
    connections: int,
    rounds: int,
    round_s: float,
) -> Cell:
    """Answers per second, against the runs of two threads on one session."""
    check_answer(server.url, workload, raw)
    request, run = workload.render(server.url), raw.prepare(workload)
    pairs, cpu_ms = [], []
    for _ in range(rounds):
        alone = count_per_second(run, RAW_THREADS, round_s)
        before_s = server.cpu_s
        load = run_load(server.url, request, connections, round_s)
        cpu_ms.append((server.cpu_s - before_s) / len(load.latencies_s) * 1000)
        pairs.append((alone, load.per_second))
    return summarize(workload.label, connections, pairs, cpu_ms)


def summarize(
    label: str, connections: int, pairs: Iterable[tuple[float, float]], cpu_ms: list[float]
) -> Cell:
    """The medians; each round's ratio is its own."""
    raws, served = zip(*pairs, strict=True)
    ratios = [after / before for before, after in zip(raws, served, strict=True)]
    low, middle, high = statistics.quantiles(ratios, n=4) if len(ratios) > 1 else ratios * 3
    return Cell(
        label,
        connections,
        statistics.median(raws),
        statistics.median(served),
        (low, middle, high),
        statistics.median(cpu_ms),
    )
