"""What has been counted of every version that is served, as Triton's extension divides it.

https://github.com/triton-inference-server/server/blob/main/docs/protocol/extension_statistics.md
gives the names. The metrics ``nv_inference_*`` are the same numbers.
"""

import threading
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Literal, Self

from service.errors import ServiceError, UnavailableError

if TYPE_CHECKING:  # it loads numpy, which the supervisor of workers does not need
    from service.inference import Answer

Reason = Literal["REJECTED", "CANCELED", "BACKEND", "OTHER"]

REASONS: Final[tuple[Reason, ...]] = ("REJECTED", "CANCELED", "BACKEND", "OTHER")


@dataclass(slots=True)
class BatchCounts:
    """The runs of one batch size.

    Attributes:
        batch_size: rows, all requests that were joined in a run together.
        count: runs.
        input_ns: time they took to make the inputs of the graph.
        infer_ns: time they took in onnxruntime.
        output_ns: time they took to make the outputs.
    """

    batch_size: int
    count: int = 0
    input_ns: int = 0
    infer_ns: int = 0
    output_ns: int = 0


@dataclass(slots=True)
class ModelCounts:
    """What has been counted of one version of a model.

    Attributes:
        name: of the model.
        version: of the model.
        last_inference_ms: when the last run ended, since 1970; 0 before the first.
        inference_count: sequences (batch rows) of the requests that were answered.
        success_count: requests that were answered.
        success_ns: time they took from the whole body to the written answer; of it
        queue_ns: waiting for a thread,
        input_ns: making the inputs of the graph,
        infer_ns: in onnxruntime,
        output_ns: making the outputs.
        fail_ns: time that requests took that failed.
        failures: requests that failed, by reason.
        batches: runs, by their batch size.
    """

    name: str
    version: str
    last_inference_ms: int = 0
    inference_count: int = 0
    success_count: int = 0
    success_ns: int = 0
    queue_ns: int = 0
    input_ns: int = 0
    infer_ns: int = 0
    output_ns: int = 0
    fail_ns: int = 0
    failures: dict[Reason, int] = field(default_factory=lambda: dict.fromkeys(REASONS, 0))
    batches: dict[int, BatchCounts] = field(default_factory=dict)

    @property
    def execution_count(self) -> int:
        """Runs; requests that were joined have one in common."""
        return sum(batch.count for batch in self.batches.values())

    @property
    def fail_count(self) -> int:
        """Requests that failed."""
        return sum(self.failures.values())

    def copy(self) -> Self:
        """The same counts, which do not change any more."""
        batches = {rows: replace(batch) for rows, batch in self.batches.items()}
        return replace(self, failures=self.failures.copy(), batches=batches)


class Statistics:
    """The counts of one application, safe to use from any thread.

    What is counted of a version that was not added, or was forgotten, is dropped: requests in
    flight may end after their version was unloaded, and must not bring it back.
    """

    def __init__(self) -> None:
        self._models: dict[tuple[str, str], ModelCounts] = {}
        self._lock = threading.Lock()

    def add(self, name: str, version: str) -> None:
        """Count a version from now on; one that is loaded again goes on where it was."""
        with self._lock:
            self._models.setdefault((name, version), ModelCounts(name, version))

    def forget(self, name: str, version: str) -> None:
        """Drop the counts of a version that is no longer served."""
        with self._lock:
            self._models.pop((name, version), None)

    def read(self, name: str, version: str) -> ModelCounts:
        """A copy of the counts of a version, all of one moment; zeros if there are none."""
        with self._lock:
            counts = self._models.get((name, version))
            return ModelCounts(name, version) if counts is None else counts.copy()

    def read_all(self) -> list[ModelCounts]:
        """Copies of the counts of all versions, by name and version."""
        # One after the other: requests that end meanwhile do not have to wait for all of them.
        with self._lock:
            versions = sorted(self._models, key=lambda each: (each[0], int(each[1])))
        return [self.read(name, version) for name, version in versions]

    def count_execution(self, answer: "Answer") -> None:
        """Count the run behind an answer, unless another answer of the same run stands for it."""
        rows, times = answer.executed_rows, answer.times
        if not rows:
            return
        with self._lock:
            counts = self._models.get((answer.model, answer.version))
            if counts is None:
                return
            now_ms = time.time_ns() // 1_000_000
            counts.last_inference_ms = max(counts.last_inference_ms, now_ms)
            batch = counts.batches.get(rows)
            if batch is None:
                batch = counts.batches[rows] = BatchCounts(rows)
            batch.count += 1
            batch.input_ns += times.input_ns
            batch.infer_ns += times.infer_ns
            batch.output_ns += times.output_ns

    def count_success(self, answer: "Answer", total_ns: int) -> None:
        """Count a request whose answer is written.

        Args:
            answer: to it.
            total_ns: from the whole body to the written answer.
        """
        times = answer.times
        with self._lock:
            counts = self._models.get((answer.model, answer.version))
            if counts is None:
                return
            counts.inference_count += answer.batch_size
            counts.success_count += 1
            counts.success_ns += total_ns
            counts.queue_ns += times.queue_ns
            counts.input_ns += times.input_ns
            counts.infer_ns += times.infer_ns
            counts.output_ns += times.output_ns

    def count_failure(self, name: str, version: str, reason: Reason, total_ns: int) -> None:
        """Count a request that was not answered.

        Args:
            name: of the model.
            version: of the model.
            reason: why.
            total_ns: from the whole body to the failure.
        """
        with self._lock:
            counts = self._models.get((name, version))
            if counts is None:
                return
            counts.failures[reason] += 1
            counts.fail_ns += total_ns


def find_reason(status: int) -> Reason:
    """Triton's word for an error: it knows a queue that is full or too slow, and the backend."""
    if status == UnavailableError.status:
        return "REJECTED"
    return "BACKEND" if status == ServiceError.status else "OTHER"
