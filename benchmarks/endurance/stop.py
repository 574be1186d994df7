"""SIGTERM while clients ask."""

import time
from typing import Final

from benchmarks.endurance.crowd import Crowd, Tally
from benchmarks.endurance.figure import Figure
from benchmarks.endurance.stage import Stage
from benchmarks.endurance.traffic import draw, render_infer
from benchmarks.server import start

MODEL: Final = "stopped"
CONNECTIONS: Final = 8
LENGTH: Final = 256
LEAST_S, MOST_S = 0.3, 0.8
STOP_TIMEOUT_S: Final = 60


def stop(stage: Stage) -> list[Figure]:
    """Whoever was answered in part, or sent a request and got nothing, is counted."""
    rounds, models = stage.size(20, 2), stage.make_repository()
    stage.place(models, MODEL, "1", stage.d_model, 1)
    tally, codes, slowest_s = Tally(), list[int](), 0.0
    for number in range(rounds):
        with start(models, LIMELIGHT_LOG_LEVEL="warning") as server:
            request = render_infer(server.url, MODEL, draw(0, 1, LENGTH, stage.d_model))
            crowd = Crowd(server.url, [request], tally.see, connections=CONNECTIONS)
            with crowd.beside():
                time.sleep(LEAST_S + (MOST_S - LEAST_S) * number / rounds)
                server.process.terminate()
                started_s = time.perf_counter()
                codes.append(server.process.wait(STOP_TIMEOUT_S))
                slowest_s = max(slowest_s, time.perf_counter() - started_s)
    counts = tally.counts
    return [
        Figure("rounds", rounds),
        Figure("answers", counts[200], least=rounds * CONNECTIONS),
        Figure("answers of 503, as it stopped", counts[503]),
        Figure("answers of any other status", count_other_statuses(tally), most=0),
        Figure("answers that were cut", counts["cut"], most=0),
        Figure("requests sent and not answered", counts["unanswered"], most=0),
        Figure("exit codes other than 0", sum(code != 0 for code in codes), most=0),
        Figure("longest stop", slowest_s, "s", most=20),
    ]


def count_other_statuses(tally: Tally) -> int:
    """Answers that are neither 200 nor 503."""
    known = (200, 503)
    return sum(n for kind, n in tally.counts.items() if isinstance(kind, int) and kind not in known)
