"""Many large requests at the same moment."""

import time
from typing import Final

from benchmarks.endurance.crowd import Crowd, Tally
from benchmarks.endurance.figure import Figure
from benchmarks.endurance.stage import Stage
from benchmarks.endurance.traffic import ask_once, draw, render_infer
from benchmarks.server import serve

MIB: Final = 2**20
MODEL: Final = "burst"
LENGTH: Final = 64
D_MODEL: Final = 512
BATCH_SIZE: Final = 48  # 6 MiB with that length and width
SETTLED_S: Final = 5


def burst(stage: Stage) -> list[Figure]:
    """All must be answered, and the memory must neither rise far nor stay risen."""
    count, models = stage.size(64, 16), stage.make_repository()
    stage.place(models, MODEL, "1", D_MODEL, 1)
    with serve(models, LIMELIGHT_LOG_LEVEL="warning") as server:
        tensors, tally = draw(0, BATCH_SIZE, LENGTH, D_MODEL), Tally()
        request = render_infer(server.url, MODEL, tensors)
        ask_once(server.url, request)
        time.sleep(SETTLED_S)
        before_bytes = server.read_memory("Rss")
        server.forget_peak()
        started_s = time.perf_counter()
        Crowd(server.url, [request], tally.see, connections=count, most=count).run()
        duration_s = time.perf_counter() - started_s
        peak_bytes = server.read_peak()
        time.sleep(SETTLED_S)
        after_bytes = server.read_memory("Rss")
    return [
        Figure("connections at once", count),
        Figure("size of each request", len(request) / MIB, "MiB"),
        Figure("answers of 200", tally.answered, least=count),
        Figure("until the last answer", duration_s, "s", most=30),
        Figure("memory before", before_bytes / MIB, "MiB"),
        Figure("memory at most beyond that", (peak_bytes - before_bytes) / MIB, "MiB", most=250),
        Figure("memory 5 s after, beyond that", (after_bytes - before_bytes) / MIB, "MiB", most=50),
    ]
