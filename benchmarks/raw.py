"""onnxruntime without a server: what every figure is a ratio to."""

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

Tensors = dict[str, NDArray[Any]]
ERRORS_ONLY: Final = 3


class Session(Protocol):
    """The part of ``onnxruntime.InferenceSession`` that the benchmarks use."""

    def run(self, output_names: list[str], input_feed: Tensors) -> list[NDArray[Any]]:
        """Compute the named outputs."""


def open_raw(path: Path) -> Session:
    """A session with one thread for each run."""
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = ERRORS_ONLY
    session: Session = onnxruntime.InferenceSession(
        path, options, providers=["CPUExecutionProvider"]
    )
    return session


def make_feeds(tensors: Tensors) -> Tensors:
    """The inputs of the graph, made beforehand: raw pays for nothing but the run.

    Args:
        tensors: ``query`` and, unless the query stands in for them, ``key``, ``value`` and a
            ``mask`` ``[B, 1, L, S]``.
    """
    query = tensors["query"]
    batch_size, length, _ = query.shape
    mask = tensors.get("mask", np.ones((batch_size, 1, length, length), np.bool_))
    bias = np.where(mask, np.float32(0), np.float32(-np.inf))
    key = tensors.get("key", query)
    return {"query": query, "key": key, "value": tensors.get("value", key), "bias": bias}


def time_calls(call: Callable[[], object], round_s: float) -> list[float]:
    """Seconds of each call, repeated for `round_s` seconds and at least three times."""
    times: list[float] = []
    end = time.perf_counter() + round_s
    while time.perf_counter() < end or len(times) < 3:
        started = time.perf_counter()
        call()
        times.append(time.perf_counter() - started)
    return times


def count_per_second(call: Callable[[], object], threads: int, round_s: float) -> float:
    """Calls per second of `threads` threads at once."""
    counts = [0] * threads
    end = time.perf_counter() + round_s

    def repeat(index: int) -> None:
        while time.perf_counter() < end:
            call()
            counts[index] += 1

    started = time.perf_counter()
    workers = [threading.Thread(target=repeat, args=(index,)) for index in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return sum(counts) / (time.perf_counter() - started)
