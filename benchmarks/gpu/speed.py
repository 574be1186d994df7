"""How long a run takes: the engine, onnxruntime alone, on the CPU, and torch's attention."""

import importlib.util
import statistics
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from benchmarks.endurance.figure import Figure
from benchmarks.gpu.layers import WIDE, Layer
from benchmarks.gpu.note import Note
from benchmarks.gpu.stage import Stage
from benchmarks.raw import time_calls
from export.hidings import Hiding, draw_tokens, graph_inputs
from export.runtime import Provider
from model.contract import FUSED_BIAS, GRAPHS, OUTPUT
from service.engine.model import Model
from service.inference import Inference

SMALL_SIZES: Final = ((1, 16), (1, 128), (4, 256))
SIZES: Final[dict[Provider, tuple[tuple[int, int], ...]]] = {
    "cpu": SMALL_SIZES,
    "cuda": (*SMALL_SIZES, (1, 1024), (16, 512)),
}
ROUNDS: Final = 3

Sides = dict[str, Callable[[], object]]


def speed(stage: Stage) -> Iterator[Figure | Note]:
    """Time runs of several sizes in turns; tokens come from the host's memory, answers go there."""
    fault = find_torch_fault(stage)
    if fault:
        yield Note("torch's scaled_dot_product_attention", f"left out: {fault}")
    for layer in WIDE:
        model = stage.load(layer)
        for batch_size, length in SIZES[stage.provider]:
            sides = prepare(stage, layer, model, batch_size, length, with_torch=not fault)
            yield from time_sides(stage, f"{layer.name} {batch_size}x{length}", sides)


def prepare(
    stage: Stage, layer: Layer, model: Model, batch_size: int, length: int, *, with_torch: bool
) -> Sides:
    """One call for each side that computes the same."""
    tokens = draw_tokens(np.random.default_rng(11), layer.spec, batch_size, length, length)
    prepared = model.check(Inference(tokens))
    ran = model.run(prepared).graph
    (graph,) = (each for each in GRAPHS if each.name == ran)
    feeds = tokens | graph_inputs(graph, tokens, Hiding("none"))
    raw = stage.open(layer, graph)
    sides: Sides = {
        f"onnxruntime alone, {ran}": lambda: raw([OUTPUT], feeds),
        "engine": lambda: model.run(prepared),
    }
    if stage.provider == "cuda":
        on_cpu = stage.open(layer, FUSED_BIAS, "cpu")
        biased = tokens | graph_inputs(FUSED_BIAS, tokens, Hiding("none"))
        sides["onnxruntime on the CPU"] = lambda: on_cpu([OUTPUT], biased)
    if with_torch:
        from benchmarks.gpu.torch_layer import TorchLayer

        torch_layer = TorchLayer(layer, stage.provider)
        sides["torch"] = lambda: torch_layer.run(tokens)
    return sides


def time_sides(stage: Stage, name: str, sides: Sides) -> Iterator[Figure]:
    """Milliseconds of each side, in turns; the first is what the ratio is to."""
    found: dict[str, list[float]] = {side: [] for side in sides}
    for call in sides.values():
        call()
    for _ in range(ROUNDS):
        for side, call in sides.items():
            found[side].append(statistics.median(time_calls(call, stage.round_s)))
    for side, times_s in found.items():
        yield Figure(f"{name}: {side}", statistics.median(times_s) * 1000, "ms")
    first = next(iter(found))
    ratios = [e / r for e, r in zip(found["engine"], found[first], strict=True)]
    yield Figure(f"{name}: engine / onnxruntime alone", statistics.median(ratios))


def find_torch_fault(stage: Stage) -> str:
    """Why torch cannot be compared with; "" where it can."""
    if importlib.util.find_spec("torch") is None:
        return "torch is not installed"
    torch: Any = importlib.import_module("torch")
    if stage.provider == "cuda" and not torch.cuda.is_available():
        return "this torch has no CUDA"
    return ""
