"""What happens when the GPU's memory is used up."""

from collections.abc import Iterator
from typing import Final

import numpy as np

from benchmarks.endurance.figure import Figure
from benchmarks.gpu.engine import measure_error
from benchmarks.gpu.layers import WIDE, Layer
from benchmarks.gpu.stage import Stage
from benchmarks.raw import Session
from export.hidings import Hiding, draw_tokens, graph_inputs
from export.runtime import CUDA, load_runtime
from model.contract import DECOMPOSED, OUTPUT
from model.reference import attend

ARENA_BYTES: Final = 128 * 2**20
LONG, SHORT = 4096, 12  # scores of 512 MiB, and of next to nothing


def memory(stage: Stage) -> Iterator[Figure]:
    """Use up a session's memory, and go on with it."""
    for layer in WIDE:
        session = open_bounded(stage, layer)
        yield Figure(f"{layer.name}: right before", ask(session, layer), most=stage.bound(layer))
        refused = is_refused(session, layer)
        yield Figure(f"{layer.name}: {LONG} tokens refused", float(refused), least=1, most=1)
        yield Figure(f"{layer.name}: right after", ask(session, layer), most=stage.bound(layer))


def open_bounded(stage: Stage, layer: Layer) -> Session:
    """A session that may take little of the GPU's memory."""
    runtime = load_runtime()
    options = {
        "use_tf32": "0",
        "gpu_mem_limit": str(ARENA_BYTES),
        "arena_extend_strategy": "kSameAsRequested",
    }
    path = stage.find(layer) / DECOMPOSED.file
    session: Session = runtime.InferenceSession(path, providers=[(CUDA, options)])
    return session


def ask(session: Session, layer: Layer) -> float:
    """The error of a short request."""
    tokens = draw_tokens(np.random.default_rng(3), layer.spec, 1, SHORT, SHORT)
    feeds = tokens | graph_inputs(DECOMPOSED, tokens, Hiding("none"))
    right, _ = attend(layer.draw_weights(), tokens["query"], tokens["key"], tokens["value"])
    return measure_error(session.run([OUTPUT], feeds)[0], right)


def is_refused(session: Session, layer: Layer) -> bool:
    """Whether a long request ends in an error."""
    tokens = draw_tokens(np.random.default_rng(3), layer.spec, 1, LONG, LONG)
    try:
        session.run([OUTPUT], tokens | graph_inputs(DECOMPOSED, tokens, Hiding("none")))
    except Exception:  # onnxruntime's errors have no class in common
        return True
    return False
