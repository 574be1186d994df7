"""Long sequences without weights: what the server holds while it answers, and how long it takes."""

import json
import time
from collections.abc import Iterator
from typing import Final

import numpy as np

from benchmarks.endurance.figure import Figure
from benchmarks.endurance.stage import Stage
from benchmarks.endurance.traffic import ask_once, draw, draw_mask, render_infer
from benchmarks.raw import Session, Tensors, make_feeds, open_raw
from benchmarks.server import ServerUnderTest, serve

MIB: Final = 2**20
MODEL: Final = "long"
NUM_HEADS: Final = 8
LENGTH: Final = 4096
PADDED: Final = 100
ROUNDS: Final = 3
SETTLED_S: Final = 3
MOST_MIB: Final = 150


def long(stage: Stage) -> list[Figure]:
    """The score matrix, 512 MiB, must never be whole, and each answer as if it had been."""
    models = stage.make_repository()
    version = stage.place(models, MODEL, "1", stage.d_model, 1, NUM_HEADS)
    session, figures = open_raw(version / "fused_bias.onnx"), list[Figure]()
    with serve(models, LIMELIGHT_LOG_LEVEL="warning") as server:
        ask_once(server.url, render_infer(server.url, MODEL, draw(0, 1, 16, stage.d_model)))
        time.sleep(SETTLED_S)
        idle_bytes = server.read_memory("Rss")
        for name, tensors in draw_kinds(stage.d_model):
            figures += measure(server, session, name, tensors, idle_bytes)
        time.sleep(SETTLED_S)
        left_bytes = server.read_memory("Rss") - idle_bytes
    figures.insert(0, Figure("memory before", idle_bytes / MIB, "MiB"))
    return [*figures, Figure("memory 3 s after, beyond that", left_bytes / MIB, "MiB", most=20)]


def draw_kinds(d_model: int) -> Iterator[tuple[str, Tensors]]:
    """Tensors of one request, and what they are called."""
    tokens = draw(0, 1, LENGTH, d_model, LENGTH)
    yield "query, key, value", tokens
    yield "with a mask", tokens | draw_mask(1, 1, 1, LENGTH, LENGTH)
    yield "with a key mask", tokens | {"key_mask": np.arange(LENGTH)[None] < LENGTH - PADDED}
    yield "query alone", {"query": tokens["query"]}


def measure(
    server: ServerUnderTest, session: Session, name: str, tensors: Tensors, idle_bytes: int
) -> list[Figure]:
    """Ask for one kind, some times; body and answer are part of what is held."""
    request = render_infer(server.url, MODEL, tensors)
    feeds = make_feeds(spread_key_mask(tensors))
    server.forget_peak()
    times_s, wrong, raw_times_s = [], 0, []
    for _ in range(ROUNDS):
        started_s = time.perf_counter()
        status, body = ask_once(server.url, request)
        times_s.append(time.perf_counter() - started_s)
        started_s = time.perf_counter()
        (right,) = session.run(["output"], feeds)
        raw_times_s.append(time.perf_counter() - started_s)
        wrong += status != 200 or read_tensors(body) != right.tobytes()
    held_bytes = server.read_peak() - idle_bytes
    ratio = float(np.median(times_s) / np.median(raw_times_s))
    return [
        Figure(f"memory at most beyond that, {name}", held_bytes / MIB, "MiB", most=MOST_MIB),
        Figure(f"time, {name}", float(np.median(times_s)), "s"),
        Figure(f"ratio to onnxruntime at once, {name}", ratio),
        Figure(f"answers that differ from that, {name}", wrong, most=0),
    ]


def spread_key_mask(tensors: Tensors) -> Tensors:
    """A key mask as the mask that says the same."""
    if "key_mask" not in tensors:
        return tensors
    mask = np.broadcast_to(tensors["key_mask"][:, None, None, :], (1, 1, LENGTH, LENGTH))
    return tensors | {"mask": mask}


def read_tensors(body: bytes) -> bytes:
    """The binary part of an answer of version 2."""
    _, end = json.JSONDecoder().raw_decode(body.decode("latin-1"))
    return body[end:]
