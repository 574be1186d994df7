"""What a running server says of itself, and waiting for it."""

import re
import time
from collections.abc import Callable
from typing import Final

import httpx

from benchmarks.server import ServerUnderTest

LOOK_S: Final = 0.01
LOOKS: Final = 10
TIMEOUT_S: Final = 120


def read_metric(url: str, name: str, label: str = "") -> float:
    """The sum of the series of a metric whose labels hold `label`."""
    text = httpx.get(f"{url}/metrics", timeout=TIMEOUT_S).text
    samples = re.findall(rf"^{name}(\{{.*\}})? (\S+)$", text, re.MULTILINE)
    return sum(float(number) for labels, number in samples if label in labels)


def count_waiting(url: str) -> float:
    """Requests that wait for a thread."""
    return read_metric(url, "nv_inference_pending_request_count")


def count_runs(url: str) -> float:
    """Runs of the models."""
    return read_metric(url, "nv_inference_exec_count")


def count_series(url: str) -> int:
    """Lines of the metrics."""
    return len(httpx.get(f"{url}/metrics", timeout=TIMEOUT_S).text.splitlines())


def change(client: httpx.Client, model: str, action: str) -> int:
    """Status of loading or unloading a model."""
    return client.post(f"/v2/repository/models/{model}/{action}").status_code


def count_settled_files(server: ServerUnderTest) -> int:
    """Descriptors while nobody asks: the least of some looks, as connections end late."""
    counts = []
    for _ in range(LOOKS):
        counts.append(server.count_files())
        time.sleep(LOOK_S)
    return min(counts)


def wait_until(condition: Callable[[], bool], timeout_s: float = TIMEOUT_S) -> float:
    """Seconds until something is so; infinite if it is not in time."""
    started_s = time.perf_counter()
    while not condition():
        if time.perf_counter() > started_s + timeout_s:
            return float("inf")
        time.sleep(LOOK_S)
    return time.perf_counter() - started_s
