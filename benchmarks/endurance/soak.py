"""A long time of all kinds of requests."""

import statistics
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from benchmarks.endurance.crowd import Crowd, Reply, find_percentile
from benchmarks.endurance.figure import Figure
from benchmarks.endurance.readings import count_settled_files, wait_until
from benchmarks.endurance.stage import Stage
from benchmarks.endurance.traffic import ask_once, draw, render_kinds
from benchmarks.raw import count_per_second, make_feeds, open_raw
from benchmarks.server import ServerUnderTest, serve

MIB: Final = 2**20
MODEL: Final = "soaked"
D_MODEL: Final = 64
CONNECTIONS: Final = 4
BLOCK_REQUESTS: Final = 1000
WARM_BLOCKS: Final = 4
RAW_S: Final = 0.1
RAW_THREADS: Final = 2
TENTHS: Final = 10
SETTLED_S: Final = 5


@dataclass
class Part:
    """A tenth of the time.

    What else the machine does comes in spells, and would decide a percentile of the whole tenth:
    each block is compared with onnxruntime in the same second, and the median of the blocks
    counts.

    Attributes:
        blocks_s: latencies of the answers of each block.
        raws_s: time of a run of onnxruntime alone, after each block, with two threads at work: one
            alone would find a free core where the server and its clients find none.
    """

    blocks_s: list[list[float]] = field(default_factory=list)
    raws_s: list[float] = field(default_factory=list)

    def find_served_ms(self, percent: float) -> float:
        """A percentile of the latencies, median of the blocks."""
        return statistics.median(find_percentile(each, percent) for each in self.blocks_s) * 1000

    def find_raw_ms(self) -> float:
        """Time of onnxruntime alone, median of the blocks."""
        return statistics.median(self.raws_s) * 1000

    def find_ratio(self, percent: float) -> float:
        """The same as a multiple of the time of onnxruntime alone, median of the blocks."""
        pairs = zip(self.blocks_s, self.raws_s, strict=True)
        return statistics.median(find_percentile(block, percent) / raw_s for block, raw_s in pairs)


class Soak:
    """Requests in blocks, each on new connections, and onnxruntime alone between two blocks."""

    def __init__(self, server: ServerUnderTest, version: Path) -> None:
        self._server = server
        kinds = render_kinds(server.url, MODEL, D_MODEL)
        self._requests = [request for _, request in kinds]
        # Wrong requests get answers with their number in them, so only statuses are compared.
        self._right = [
            (status, ask_once(server.url, request)[1] if status == 200 else None)
            for status, request in kinds
        ]
        session, feeds = open_raw(version / "fused_bias.onnx"), make_feeds(draw(0, 2, 48, D_MODEL))
        self._run_raw = lambda: session.run(["output"], feeds)
        self.answered = self.failed = 0

    def run_block(self, part: Part) -> None:
        """Ask each kind of request a hundred times, and time onnxruntime alone."""
        latencies_s: list[float] = []

        def see(reply: Reply) -> None:
            status, body = self._right[reply.number % len(self._right)]
            is_right = reply.status == status and (body is None or reply.body == body)
            self.answered += 1
            self.failed += not is_right
            latencies_s.append(reply.latency_s)

        url, requests = self._server.url, self._requests
        Crowd(url, requests, see, connections=CONNECTIONS, most=BLOCK_REQUESTS).run()
        part.blocks_s.append(latencies_s)
        part.raws_s.append(RAW_THREADS / count_per_second(self._run_raw, RAW_THREADS, RAW_S))


def soak(stage: Stage) -> list[Figure]:
    """All doors and shapes, and wrong requests too; every answer is compared with the first."""
    blocks = stage.size(1_000_000, 10_000) // BLOCK_REQUESTS
    models = stage.make_repository()
    version = stage.place(models, MODEL, "1", D_MODEL, 1)
    with serve(models, LIMELIGHT_LOG_LEVEL="warning") as server:
        run, parts = Soak(server, version), [Part() for _ in range(TENTHS)]
        for _ in range(WARM_BLOCKS):
            run.run_block(Part())
        files = count_settled_files(server)
        warm_bytes = most_bytes = server.read_memory("Rss")
        for block in range(blocks):
            run.run_block(parts[block * TENTHS // blocks])
            most_bytes = max(most_bytes, server.read_memory("Rss"))
        left_open = wait_until(lambda: server.count_files() <= files, SETTLED_S)
        end_bytes = server.read_memory("Rss")
        more_files = server.count_files() - files
    first, last = parts[0], parts[-1]
    return [
        Figure("requests", run.answered),
        Figure("answers that were not the right ones", run.failed, most=0),
        Figure("memory when warm", warm_bytes / MIB, "MiB"),
        Figure("memory at the end beyond that", (end_bytes - warm_bytes) / MIB, "MiB", most=50),
        Figure("memory at most beyond that", (most_bytes - warm_bytes) / MIB, "MiB", most=50),
        Figure("descriptors beyond those when warm", more_files, most=0),
        Figure("seconds until they were closed", left_open, "s", most=SETTLED_S),
        Figure("median latency, first tenth", first.find_served_ms(50), "ms"),
        Figure("99th percentile, first tenth", first.find_served_ms(99), "ms"),
        Figure("onnxruntime alone, first tenth", first.find_raw_ms(), "ms"),
        Figure("median latency, last tenth", last.find_served_ms(50), "ms"),
        Figure("99th percentile, last tenth", last.find_served_ms(99), "ms"),
        Figure("onnxruntime alone, last tenth", last.find_raw_ms(), "ms"),
        compare("ratio of the medians to it, last tenth / first", first, last, 50, 1.1),
        compare("ratio of the 99th percentiles, last / first", first, last, 99, 1.5),
    ]


def compare(name: str, first: Part, last: Part, percent: float, most: float) -> Figure:
    """How much slower the last part was than the first, each as a multiple of onnxruntime."""
    return Figure(name, last.find_ratio(percent) / first.find_ratio(percent), most=most)
