"""The answer of Triton's statistics extension: OpenAPI comes from it.

https://github.com/triton-inference-server/server/blob/main/docs/protocol/extension_statistics.md;
`cache_miss`, `response_stats` and `memory_usage` are in Triton's answers without being in that
text, and perf_analyzer reads `cache_miss` without asking whether it is there.
"""

from collections.abc import Iterable

from pydantic import BaseModel, Field, NonNegativeInt

from service.statistics import BatchCounts, ModelCounts


class DurationStatistics(BaseModel):
    """How often something was done, and how long it took in all."""

    count: NonNegativeInt = 0
    ns: NonNegativeInt = 0


class InferenceStatistics(BaseModel):
    """Requests: those that failed count in `fail` alone. There is no cache of answers."""

    success: DurationStatistics
    fail: DurationStatistics
    queue: DurationStatistics
    compute_input: DurationStatistics
    compute_infer: DurationStatistics
    compute_output: DurationStatistics
    cache_hit: DurationStatistics = DurationStatistics()
    cache_miss: DurationStatistics = DurationStatistics()


class BatchStatistics(BaseModel):
    """Runs of one batch size."""

    batch_size: NonNegativeInt
    compute_input: DurationStatistics
    compute_infer: DurationStatistics
    compute_output: DurationStatistics


class ModelStatistics(BaseModel):
    """One version of a model.

    `last_inference` is in milliseconds since 1970. `inference_count` counts batch rows, and
    `execution_count` runs. `response_stats` is for models that answer in several parts, and
    `memory_usage` for backends that report it: neither is here.
    """

    name: str
    version: str
    last_inference: NonNegativeInt
    inference_count: NonNegativeInt
    execution_count: NonNegativeInt
    inference_stats: InferenceStatistics
    response_stats: dict[str, InferenceStatistics] = Field(default_factory=dict, max_length=0)
    batch_stats: list[BatchStatistics]
    memory_usage: list[int] = Field(default_factory=list, max_length=0)


class StatisticsAnswer(BaseModel):
    """Every version that was asked for."""

    model_stats: list[ModelStatistics]


def describe_statistics(counted: Iterable[ModelCounts]) -> StatisticsAnswer:
    """The answer."""
    return StatisticsAnswer(model_stats=[describe_model(counts) for counts in counted])


def describe_model(counts: ModelCounts) -> ModelStatistics:
    """One version of a model."""
    return ModelStatistics(
        name=counts.name,
        version=counts.version,
        last_inference=counts.last_inference_ms,
        inference_count=counts.inference_count,
        execution_count=counts.execution_count,
        inference_stats=describe_requests(counts),
        batch_stats=[describe_batch(counts.batches[rows]) for rows in sorted(counts.batches)],
    )


def describe_requests(counts: ModelCounts) -> InferenceStatistics:
    """The requests: each that was answered counts once in all that it went through."""
    answered = counts.success_count
    return InferenceStatistics(
        success=DurationStatistics(count=answered, ns=counts.success_ns),
        fail=DurationStatistics(count=counts.fail_count, ns=counts.fail_ns),
        queue=DurationStatistics(count=answered, ns=counts.queue_ns),
        compute_input=DurationStatistics(count=answered, ns=counts.input_ns),
        compute_infer=DurationStatistics(count=answered, ns=counts.infer_ns),
        compute_output=DurationStatistics(count=answered, ns=counts.output_ns),
    )


def describe_batch(counts: BatchCounts) -> BatchStatistics:
    """The runs of one batch size."""
    return BatchStatistics(
        batch_size=counts.batch_size,
        compute_input=DurationStatistics(count=counts.count, ns=counts.input_ns),
        compute_infer=DurationStatistics(count=counts.count, ns=counts.infer_ns),
        compute_output=DurationStatistics(count=counts.count, ns=counts.output_ns),
    )
