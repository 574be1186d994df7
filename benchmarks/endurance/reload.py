"""Models that are loaded, unloaded and loaded again while clients ask."""

from typing import Final

import httpx

from benchmarks.endurance.crowd import Crowd, Reply, Tally
from benchmarks.endurance.figure import Figure
from benchmarks.endurance.readings import TIMEOUT_S, change, count_series
from benchmarks.endurance.stage import Stage
from benchmarks.endurance.traffic import ask_once, draw, render_infer
from benchmarks.server import serve

MIB: Final = 2**20
CONNECTIONS: Final = 8
WARM_CYCLES: Final = 20
LENGTH: Final = 16
STEPS: Final = (("guest", "unload"), ("guest", "load"), ("steady", "load"))


def reload(stage: Stage) -> list[Figure]:
    """In each cycle `guest` goes and comes, and `steady`, which all ask, is loaded again."""
    models = stage.make_repository()
    for seed, name in enumerate(("steady", "guest"), 1):
        stage.place(models, name, "1", stage.d_model, seed)
    settings = {"LIMELIGHT_MODEL_CONTROL": "explicit", "LIMELIGHT_LOG_LEVEL": "warning"}
    with serve(models, (), **settings) as server:
        request = render_infer(server.url, "steady", draw(0, 1, LENGTH, stage.d_model))
        right, tally, wrong = ask_once(server.url, request)[1], Tally(), list[int]()

        def see(reply: Reply) -> None:
            tally.see(reply)
            if reply.status == 200 and reply.body != right:
                wrong.append(reply.number)

        cycles, refused, warm_bytes = stage.size(1000, WARM_CYCLES + 5), 0, 0
        client = httpx.Client(base_url=server.url, timeout=TIMEOUT_S)
        with client, Crowd(server.url, [request], see, connections=CONNECTIONS).beside():
            for cycle in range(cycles):
                refused += sum(change(client, *step) != 200 for step in STEPS)
                if cycle == WARM_CYCLES:
                    warm_bytes = server.read_memory("Rss")
        growth_bytes = server.read_memory("Rss") - warm_bytes
        return [
            Figure("cycles of unload, load and load again", cycles),
            Figure("changes that failed", refused, most=0),
            Figure("requests meanwhile", tally.answered, least=CONNECTIONS),
            Figure("requests that failed", tally.failed, most=0),
            Figure("answers that were not the right one", len(wrong), most=0),
            Figure("memory beyond that after 20 cycles", growth_bytes / MIB, "MiB", most=20),
            *count_new_series(stage, server.url),
        ]


def count_new_series(stage: Stage, url: str) -> list[Figure]:
    """Ask for names that no model has."""
    names, others = stage.size(10_000, 200), 0
    with httpx.Client(base_url=url, timeout=TIMEOUT_S) as client:
        client.post("/v2/models/unknown/infer", json={})
        change(client, "unknown", "load")
        before = count_series(url)
        for number in range(names):
            status = client.post(f"/v2/models/unknown-{number}/infer", json={}).status_code
            others += status != 404
            others += change(client, f"unknown-{number}", "load") != 404
        after = count_series(url)
    return [
        Figure("unknown names, asked and loaded", names),
        Figure("answers to them other than 404", others, most=0),
        Figure("new series of the metrics", after - before, most=0),
    ]
