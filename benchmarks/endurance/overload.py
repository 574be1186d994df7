"""Ten times as many requests as can be computed."""

import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from benchmarks.endurance.crowd import Crowd, Reply, Tally, find_percentile
from benchmarks.endurance.figure import Figure
from benchmarks.endurance.readings import TIMEOUT_S
from benchmarks.endurance.stage import Stage
from benchmarks.endurance.traffic import ask_once, draw, render_infer
from benchmarks.server import serve

MODEL: Final = "overloaded"
D_MODEL: Final = 8  # long sequences of narrow tokens: much to compute, little to send
LENGTH: Final = 2048
BATCH_SIZE: Final = 2
FACTOR: Final = 10
QUEUE_REQUESTS: Final = 8
SPARE_CONNECTIONS: Final = 48
USUALLY_MS: Final = 50
AT_MOST_MS: Final = 500
USUAL_FACTOR: Final = 3


@dataclass
class Flood:
    """What came of the requests that were too many.

    Attributes:
        tally: of all of them.
        refusals_s: time of each refusal.
        silent: refusals that do not say when to come again.
        duration_s: of the load.
    """

    tally: Tally = field(default_factory=Tally)
    refusals_s: list[float] = field(default_factory=list)
    silent: int = 0
    duration_s: float = 0.0

    def see(self, reply: Reply) -> None:
        """Count one."""
        self.tally.see(reply)
        if reply.status == 503:
            self.refusals_s.append(reply.latency_s)
            self.silent += b"\r\nretry-after: " not in reply.head

    def find_refusal_ms(self, percent: float) -> float:
        """A percentile of the time of a refusal."""
        return find_percentile(self.refusals_s, percent) * 1000

    def report(self, capacity: float) -> list[Figure]:
        """The figures, against what the server can compute in a second."""
        offered = self.tally.counts.total() / self.duration_s
        goodput = self.tally.answered / self.duration_s
        others = self.tally.failed - len(self.refusals_s)
        return [
            Figure("requests offered, as multiple of the capacity", offered / capacity, least=8),
            Figure("answers of 200, as share of the capacity", goodput / capacity, least=0.9),
            Figure("refusals of 503", len(self.refusals_s), least=1),
            Figure("refusals without Retry-After", self.silent, most=0),
            Figure("requests that ended otherwise", others, most=0),
            Figure("median time of a refusal", self.find_refusal_ms(50), "ms", most=USUALLY_MS),
            Figure("99th percentile of it", self.find_refusal_ms(99), "ms", most=AT_MOST_MS),
        ]


def overload(stage: Stage) -> list[Figure]:
    """What is computed must not become less, and the rest must be told at once to come later."""
    models = stage.make_repository()
    stage.place(models, MODEL, "1", D_MODEL, 1)
    # With a queue of half a second of work, what waits when the load ends is soon done.
    settings = {
        "LIMELIGHT_MAX_QUEUE_REQUESTS": str(QUEUE_REQUESTS),
        "LIMELIGHT_LOG_LEVEL": "warning",
    }
    with serve(models, (), **settings) as server:
        request = render_infer(server.url, MODEL, draw(0, BATCH_SIZE, LENGTH, D_MODEL))
        usual_s = statistics.median(time_answers(server.url, request))
        capacity = measure_capacity(server.url, request, stage.size(10, 2))
        with flood(server.url, request, FACTOR * capacity, stage.size(60, 4)) as seen:
            figures = seen.report(capacity)
            recovery_s = measure_recovery(server.url, request, usual_s)
    return [
        Figure("capacity", capacity, "/s"),
        *figures,
        Figure("time of an answer before", usual_s * 1000, "ms"),
        Figure("until it is that again, up to three times", recovery_s, "s", most=2),
    ]


@contextmanager
def flood(url: str, request: bytes, rate_per_s: float, duration_s: float) -> Iterator[Flood]:
    """Ask at a rate for a while; the block begins when the load has ended."""
    seen, stopped = Flood(duration_s=duration_s), threading.Event()
    crowd = Crowd(
        url,
        [request],
        seen.see,
        connections=QUEUE_REQUESTS + SPARE_CONNECTIONS,
        rate_per_s=rate_per_s,
    )
    runner = threading.Thread(target=crowd.run, args=(stopped.is_set,))
    runner.start()
    time.sleep(duration_s)
    stopped.set()
    yield seen
    runner.join()


def time_answers(url: str, request: bytes) -> list[float]:
    """Seconds of one request after the other."""
    times = []
    for _ in range(5):
        started_s = time.perf_counter()
        ask_once(url, request)
        times.append(time.perf_counter() - started_s)
    return times


def measure_capacity(url: str, request: bytes, duration_s: float) -> float:
    """Answers per second where as many are asked for as the queue takes."""
    tally, end_s = Tally(), time.perf_counter() + duration_s
    Crowd(url, [request], tally.see, connections=QUEUE_REQUESTS).run(
        lambda: time.perf_counter() > end_s
    )
    return tally.answered / (time.perf_counter() - end_s + duration_s)


def measure_recovery(url: str, request: bytes, usual_s: float) -> float:
    """Seconds until a request is answered in about the usual time."""
    begun_s = time.perf_counter()
    while time.perf_counter() < begun_s + TIMEOUT_S:
        started_s = time.perf_counter()
        status, _ = ask_once(url, request)
        if status == 200 and time.perf_counter() - started_s < USUAL_FACTOR * usual_s:
            return time.perf_counter() - begun_s
    return float("inf")
