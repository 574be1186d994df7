"""The configuration of a model, held against Triton's definition of the message."""

import importlib.util
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import pytest

from model.contract import AttentionSpec
from service.protocol.v2_config import ModelConfiguration, describe_config
from service.protocol.v2_metadata import describe_model

SPEC = AttentionSpec(d_model=6, num_heads=3)
WIDE = AttentionSpec(d_model=6, num_heads=3, kdim=8, vdim=10)


def describe(spec: AttentionSpec = SPEC, **changes: Any) -> ModelConfiguration:
    settings: dict[str, Any] = {
        "max_batch_size": 4, "max_queue_delay_us": 0, "kind": "KIND_CPU", "count": 2,
    }  # fmt: skip
    return describe_config("demo", spec, **settings | changes)


def load_message_type() -> Any:
    """The class ModelConfig of tritonclient, whose package for gRPC needs grpcio."""
    package = importlib.util.find_spec("tritonclient")
    assert package
    assert package.origin
    file = Path(package.origin).parent / "grpc" / "model_config_pb2.py"
    spec = importlib.util.spec_from_file_location("model_config_pb2", file)
    assert isinstance(spec, ModuleSpec)
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.ModelConfig


@pytest.mark.clients
@pytest.mark.parametrize("spec", [SPEC, WIDE])
@pytest.mark.parametrize("max_batch_size", [0, 4])
@pytest.mark.parametrize("max_queue_delay_us", [0, 500])
def test_it_is_a_message_of_triton(
    spec: AttentionSpec, max_batch_size: int, max_queue_delay_us: int
) -> None:
    said = describe(
        spec,
        max_batch_size=max_batch_size,
        max_queue_delay_us=max_queue_delay_us,
        kind="KIND_GPU",
        count=3,
    )
    # Refuses unknown fields, unknown members of enumerations and wrong types.
    parse = importlib.import_module("google.protobuf.json_format").ParseDict
    message = parse(said.model_dump(exclude_none=True), load_message_type()())
    assert (message.name, message.platform) == ("demo", "onnxruntime_onnx")
    assert message.backend == "onnxruntime"
    assert message.max_batch_size == max_batch_size
    assert message.version_policy.WhichOneof("policy_choice") == "all"
    assert message.instance_group[0].kind == message.instance_group[0].KIND_GPU
    assert message.instance_group[0].count == 3
    assert message.HasField("dynamic_batching") == (max_queue_delay_us > 0)
    assert message.dynamic_batching.max_queue_delay_microseconds == max_queue_delay_us
    assert [list(entry.dims) for entry in message.input] == [entry.dims for entry in said.input]


@pytest.mark.parametrize("spec", [SPEC, WIDE])
@pytest.mark.parametrize(("max_batch_size", "batch_axis"), [(0, []), (4, [-1])])
def test_dims_leave_out_the_batch_axis_where_there_is_a_largest_batch(
    spec: AttentionSpec, max_batch_size: int, batch_axis: list[int]
) -> None:
    said = describe(spec, max_batch_size=max_batch_size)
    metadata = describe_model("demo", ["1"], spec, "cpu")
    for entries, tensors in ((said.input, metadata.inputs), (said.output, metadata.outputs)):
        shapes = {entry.name: (entry.data_type, batch_axis + entry.dims) for entry in entries}
        assert shapes == {t.name: (f"TYPE_{t.datatype}", t.shape) for t in tensors}


@pytest.mark.parametrize(
    ("spec", "required"),
    [
        (SPEC, {"query"}),
        (AttentionSpec(6, 3, kdim=8, vdim=8), {"query", "key"}),
        (AttentionSpec(6, 3, kdim=6, vdim=8), {"query", "value"}),
        (WIDE, {"query", "key", "value"}),
    ],
)
def test_an_input_is_optional_where_another_can_stand_in(
    spec: AttentionSpec, required: set[str]
) -> None:
    assert {entry.name for entry in describe(spec).input if not entry.optional} == required


def test_whole_numbers_are_numbers() -> None:
    said = describe(max_queue_delay_us=500).model_dump()
    assert said["input"][0]["dims"] == [-1, 6]
    assert said["dynamic_batching"] == {"max_queue_delay_microseconds": 500}
