"""A health probe beside large requests."""

import multiprocessing
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.synchronize import Event
from typing import Final

from benchmarks.client import Connection, run_load
from benchmarks.endurance.crowd import find_percentile
from benchmarks.endurance.figure import Figure
from benchmarks.endurance.stage import Stage
from benchmarks.endurance.traffic import draw, render_infer
from benchmarks.server import serve
from benchmarks.wire import encode_v2_json, render_post

MIB: Final = 2**20
MODEL: Final = "probed"
LENGTH: Final = 64
JSON_ROWS: Final = 12  # with that length and d_model 512 and the digits of float64, 8 MiB
CONNECTIONS: Final = 8
BINARY_SIZE: Final = (4, 256)
PERIOD_S: Final = 0.01
WARM_S: Final = 1.0
AT_MOST_MS: Final = 20
PROBE: Final = b"GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n"


def probe(stage: Stage) -> list[Figure]:
    """Alive must be said soon, whatever is parsed, computed and written meanwhile."""
    count, models, d_model = stage.size(2000, 20), stage.make_repository(), stage.d_model
    stage.place(models, MODEL, "1", d_model, 1)
    with serve(models, LIMELIGHT_LOG_LEVEL="warning") as server:
        body, headers = encode_v2_json(draw(0, JSON_ROWS, LENGTH, d_model), nested=True)
        as_json = render_post(server.url, f"/v2/models/{MODEL}/infer", body, headers)
        as_binary = render_infer(server.url, MODEL, draw(1, *BINARY_SIZE, d_model))
        alone_ms = measure(server.url, count)
        figures = [
            Figure("probes of each kind", count),
            Figure("99th percentile alone", find_percentile(alone_ms, 99), "ms"),
        ]
        for form, request in (("JSON", as_json), ("binary data", as_binary)):
            with load(server.url, request) as loader:
                times_ms = measure(server.url, count)
                broken = not loader.is_alive()
            figures += report(form, len(request), times_ms, broken=broken)
    return figures


def report(form: str, size_bytes: int, times_ms: list[float], *, broken: bool) -> list[Figure]:
    """The figures beside one kind of load."""
    beside = f"beside {CONNECTIONS} connections of {form}"
    return [
        Figure(f"size of a request of {form}", size_bytes / MIB, "MiB"),
        Figure(f"requests of {form} that failed", broken, most=0),
        Figure(f"median {beside}", statistics.median(times_ms), "ms"),
        Figure(f"99th percentile {beside}", find_percentile(times_ms, 99), "ms", most=AT_MOST_MS),
        Figure(f"longest {beside}", max(times_ms), "ms"),
    ]


def measure(url: str, count: int) -> list[float]:
    """Milliseconds of each of `count` probes, on one connection."""
    connection, times_ms = Connection(url, PROBE), []
    for _ in range(count):
        started_s = time.perf_counter()
        connection.ask()
        times_ms.append((time.perf_counter() - started_s) * 1000)
        time.sleep(PERIOD_S)
    connection.close()
    return times_ms


@contextmanager
def load(url: str, request: bytes) -> Iterator[multiprocessing.process.BaseProcess]:
    """Keep requests in flight, from a process of its own: the probe must not wait for its client.

    The process ends early if a request fails.
    """
    context = multiprocessing.get_context("spawn")
    stop = context.Event()
    process = context.Process(target=keep_asking, args=(url, request, stop))
    process.start()
    try:
        time.sleep(WARM_S)
        yield process
    finally:
        stop.set()
        process.join()


def keep_asking(url: str, request: bytes, stop: Event) -> None:
    """Ask until told to stop."""
    while not stop.is_set():
        run_load(url, request, CONNECTIONS, WARM_S)
