"""Requests as the server computes them: joined, and several at the same time."""

import threading
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from benchmarks.endurance.figure import Figure
from benchmarks.gpu.layers import SMALL, WIDE, Layer
from benchmarks.gpu.stage import Stage
from benchmarks.raw import count_per_second
from export.hidings import draw_tokens
from model.contract import KEY_MASK, OUTPUT, QUERY
from model.reference import attend
from service.engine.lane import go_on
from service.engine.model import Model
from service.engine.signature import Prepared
from service.inference import Inference

LENGTHS: Final = (16, 5, 9, 16, 5, 12, 33, 5)
THREADS, RUNS_EACH = 8, 12
LOAD_LENGTH: Final = 128


@dataclass(frozen=True)
class Question:
    """A request, and its right answer.

    Attributes:
        prepared: as the engine takes it.
        right: the output in float64 ``[B, L, D]``.
    """

    prepared: Prepared
    right: NDArray[np.float64]


def joining(stage: Stage) -> Iterator[Figure]:
    """Let requests share a run wherever the engine joins them."""
    for layer in SMALL:
        model = stage.load(layer)
        groups: dict[Hashable, list[Question]] = {}
        for question in draw_questions(model, layer):
            groups.setdefault(model.lane.join_key(question.prepared), []).append(question)
        error = max(run_together(model, questions) for questions in groups.values())
        yield Figure(f"{layer.name}: error of joined requests", error, most=stage.bound(layer))
        name = f"{layer.name}: runs for {len(LENGTHS)} requests"
        yield Figure(name, len(groups), most=len(LENGTHS) - 1)


def draw_questions(model: Model, layer: Layer) -> Iterator[Question]:
    """Requests of several lengths, every third with padding of its own."""
    generator, weights = np.random.default_rng(5), layer.draw_weights()
    for number, length in enumerate(LENGTHS):
        tensors: dict[str, Any] = draw_tokens(generator, layer.spec, 1 + number % 2, length, length)
        if number % 3 == 0:
            key_mask = np.ones(tensors[QUERY].shape[:2], bool)
            key_mask[:, length // 2 :] = False
            tensors[KEY_MASK] = key_mask
        right, _ = attend(weights, **tensors)
        yield Question(model.check(Inference(tensors)), right)


def run_together(model: Model, questions: list[Question]) -> float:
    """The largest error of requests that are computed in one run."""
    answers = model.lane.run([question.prepared for question in questions], go_on)
    return max(
        measure_error(answer.tensors[OUTPUT], question.right)
        for answer, question in zip(answers, questions, strict=True)
    )


def measure_error(answer: NDArray[Any], right: NDArray[np.float64]) -> float:
    """The largest distance; infinite where one is not a number or the shapes differ."""
    if answer.shape != right.shape:
        return float("inf")
    error = float(np.abs(answer - right).max())
    return error if np.isfinite(error) else float("inf")


def concurrency(stage: Stage) -> Iterator[Figure]:
    """Compute on several threads at the same time, with one model."""
    for layer in SMALL:
        model = stage.load(layer)
        errors = run_at_once(model, list(draw_questions(model, layer)))
        yield Figure(f"{layer.name}: answers", len(errors), least=THREADS * RUNS_EACH)
        error = max(errors, default=float("inf"))
        yield Figure(f"{layer.name}: error, {THREADS} threads", error, most=stage.bound(layer))
    for layer in WIDE:
        yield from measure_threads(stage, layer)


def run_at_once(model: Model, questions: list[Question]) -> list[float]:
    """The errors of what several threads ask, each in an order of its own; a failure is none."""
    errors: list[float] = []

    def repeat(first: int) -> None:
        for number in range(first, first + RUNS_EACH):
            question = questions[number % len(questions)]
            answer = model.run(question.prepared).tensors[OUTPUT]
            errors.append(measure_error(answer, question.right))

    threads = [threading.Thread(target=repeat, args=(first,)) for first in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors


def measure_threads(stage: Stage, layer: Layer) -> Iterator[Figure]:
    """Requests per second of one thread and of several."""
    model = stage.load(layer)
    tensors = draw_tokens(np.random.default_rng(7), layer.spec, 1, LOAD_LENGTH, LOAD_LENGTH)
    prepared = model.check(Inference(tensors))
    for threads in (1, THREADS):
        found = count_per_second(lambda: model.run(prepared), threads, 3 * stage.round_s)
        yield Figure(f"{layer.name} 1x{LOAD_LENGTH}: {threads} threads", found, "/s")
