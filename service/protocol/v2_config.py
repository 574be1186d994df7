"""The configuration of a model, as Triton's extension model_configuration words it.

https://github.com/triton-inference-server/common/blob/main/protobuf/model_config.proto: the message
ModelConfig, with its own names of fields, and whole numbers as numbers.
"""

from typing import Final, Literal

from pydantic import BaseModel

from model.contract import AttentionSpec
from service.examples import find_widths
from service.protocol.v2_metadata import PLATFORM, Tensors, list_inputs, list_outputs

BACKEND: Final = "onnxruntime"
Kind = Literal["KIND_CPU", "KIND_GPU"]


class AllVersions(BaseModel):
    """No choice among versions."""


class VersionPolicy(BaseModel):
    """Which versions are served: all that are loaded."""

    all: AllVersions = AllVersions()


class ConfigOutput(BaseModel):
    """An output; `dims` leave the batch axis out where `max_batch_size` is not 0."""

    name: str
    data_type: Literal["TYPE_FP32", "TYPE_BOOL"]
    dims: list[int]


class ConfigInput(ConfigOutput):
    """An input, and whether it may be left out."""

    optional: bool


class InstanceGroup(BaseModel):
    """How many requests are computed at the same time, and where."""

    kind: Kind
    count: int


class DynamicBatching(BaseModel):
    """Requests wait this long for others to be computed with."""

    max_queue_delay_microseconds: int


class ModelConfiguration(BaseModel):
    """What a model takes and gives, and how it is served."""

    name: str
    platform: str = PLATFORM
    backend: str = BACKEND
    version_policy: VersionPolicy = VersionPolicy()
    max_batch_size: int
    input: list[ConfigInput]
    output: list[ConfigOutput]
    instance_group: list[InstanceGroup]
    dynamic_batching: DynamicBatching | None = None


def describe_config(
    name: str,
    spec: AttentionSpec,
    *,
    max_batch_size: int,
    max_queue_delay_us: int,
    kind: Kind,
    count: int,
) -> ModelConfiguration:
    """The configuration of a model.

    Args:
        name: of the model.
        spec: its sizes.
        max_batch_size: most sequences in one request; 0 where the batch axis is one like any other.
        max_queue_delay_us: how long a request waits for others; 0 where it does not.
        kind: where the model computes.
        count: of requests computed at the same time.
    """
    required, is_batched = find_widths(spec), max_batch_size > 0
    delay = max_queue_delay_us or None
    return ModelConfiguration(
        name=name,
        max_batch_size=max_batch_size,
        input=[
            ConfigInput(**entry.model_dump(), optional=entry.name not in required)
            for entry in list_entries(list_inputs(spec), is_batched=is_batched)
        ],
        output=list_entries(list_outputs(spec), is_batched=is_batched),
        instance_group=[InstanceGroup(kind=kind, count=count)],
        dynamic_batching=delay and DynamicBatching(max_queue_delay_microseconds=delay),
    )


def list_entries(tensors: Tensors, *, is_batched: bool) -> list[ConfigOutput]:
    """Tensors as a configuration says them: Triton puts the batch axis in front of `dims`."""
    return [
        ConfigOutput(name=name, data_type=f"TYPE_{datatype}", dims=shape[is_batched:])
        for name, (datatype, shape) in tensors.items()
    ]
