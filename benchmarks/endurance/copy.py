"""A version that arrives slowly in a directory that is polled, while clients ask."""

import json
import time
from collections import Counter
from pathlib import Path
from typing import Final

import httpx

from benchmarks.endurance.crowd import Crowd, Reply, Tally
from benchmarks.endurance.figure import Figure
from benchmarks.endurance.readings import TIMEOUT_S, wait_until
from benchmarks.endurance.stage import Stage
from benchmarks.endurance.traffic import draw, render_infer
from benchmarks.raw import make_feeds, open_raw
from benchmarks.server import serve

MODEL: Final = "growing"
CONNECTIONS: Final = 8
LENGTH: Final = 16
CHUNK_BYTES: Final = 5000
BYTES_PER_S: Final = 100_000
POLL_S: Final = 0.5
RATE_PER_S: Final = 200
AFTERWARDS_S: Final = 1
SETTINGS: Final = {
    "LIMELIGHT_MODEL_CONTROL": "poll",
    "LIMELIGHT_MODEL_POLL_INTERVAL_S": str(POLL_S),
    "LIMELIGHT_LOG_LEVEL": "warning",
}


def copy(stage: Stage) -> list[Figure]:
    """Each answer must be, bit for bit, what onnxruntime computes from version 1 or 2."""
    models, tensors = stage.make_repository(), draw(0, 1, LENGTH, stage.d_model)
    stage.place(models, MODEL, "1", stage.d_model, 1)
    rights = {}
    for seed in (1, 2):
        session = open_raw(stage.export(stage.d_model, seed) / "fused_bias.onnx")
        rights[str(seed)] = session.run(["output"], make_feeds(tensors))[0].tobytes()
    tally, versions, others = Tally(), Counter[str](), list[int]()

    def see(reply: Reply) -> None:
        tally.see(reply)
        if reply.status != 200:
            return
        root, end = json.JSONDecoder().raw_decode(reply.body.decode("latin-1"))
        version = root["model_version"]
        versions[version] += 1
        if reply.body[end:] != rights.get(version):
            others.append(reply.number)

    with serve(models, (), **SETTINGS) as server:
        request = render_infer(server.url, MODEL, tensors)
        load = {"connections": CONNECTIONS, "rate_per_s": RATE_PER_S}
        with Crowd(server.url, [request], see, **load).beside():
            wait_until(lambda: versions["1"] > 0)
            started_s = time.perf_counter()
            copied_bytes = copy_slowly(stage.export(stage.d_model, 2), models / MODEL / "2")
            copy_s = time.perf_counter() - started_s
            ready_s = wait_until(lambda: is_served(server.url, "2"))
            time.sleep(AFTERWARDS_S)
    return [
        Figure("size of the new version", copied_bytes / 1000, "kB"),
        Figure("speed of the copy", copied_bytes / 1000 / copy_s, "kB/s", most=100),
        Figure("requests meanwhile", tally.answered, least=CONNECTIONS),
        Figure("requests that failed", tally.failed, most=0),
        Figure("answers of version 1", versions["1"], least=1),
        Figure("answers of version 2", versions["2"], least=1),
        Figure("answers of neither, or of half a model", len(others), most=0),
        Figure("from the last byte to serving", ready_s, "s", most=10),
    ]


def copy_slowly(source: Path, target: Path) -> int:
    """Copy files in pieces, each under its own name from the start; all their bytes."""
    target.mkdir()
    copied_bytes, started_s = 0, time.perf_counter()
    for path in sorted(source.iterdir()):
        with path.open("rb") as reader, (target / path.name).open("wb", buffering=0) as writer:
            while chunk := reader.read(CHUNK_BYTES):
                writer.write(chunk)
                copied_bytes += len(chunk)
                due_s = started_s + copied_bytes / BYTES_PER_S
                time.sleep(max(due_s - time.perf_counter(), 0))
    return copied_bytes


def is_served(url: str, version: str) -> bool:
    """Whether the server answers with a version."""
    path = f"{url}/v2/models/{MODEL}/versions/{version}/ready"
    return httpx.get(path, timeout=TIMEOUT_S).status_code == httpx.codes.OK
