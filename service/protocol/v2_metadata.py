"""What a server of the Open Inference Protocol V2 says of itself and of its models."""

from typing import Final, Literal

from model.contract import BIAS, KEY, KEY_MASK, MASK, OUTPUT, QUERY, VALUE, WEIGHTS, AttentionSpec
from service.protocol.v2_schema import ModelMetadata, ServerMetadata, TensorMetadata

Tensors = dict[str, tuple[Literal["FP32", "BOOL"], list[int]]]

EXTENSIONS: Final = (
    "binary_tensor_data",
    "model_configuration",
    "parameters",
    "schedule_policy",
    "statistics",
)
MODEL_REPOSITORY: Final = "model_repository"
PLATFORM: Final = "onnxruntime_onnx"


def describe_server(version: str, *, can_load: bool) -> ServerMetadata:
    """Name, version, and the extensions that work.

    Args:
        version: of the server.
        can_load: whether clients may load and unload models.
    """
    extensions = [*EXTENSIONS, MODEL_REPOSITORY] if can_load else [*EXTENSIONS]
    return ServerMetadata(name="limelight", version=version, extensions=extensions)


def describe_model(
    name: str, versions: list[str], spec: AttentionSpec, provider: str
) -> ModelMetadata:
    """Inputs and outputs of a model; a mask may have fewer axes than the four that are said."""
    return ModelMetadata(
        name=name,
        versions=versions,
        platform=PLATFORM,
        inputs=list_tensors(list_inputs(spec)),
        outputs=list_tensors(list_outputs(spec)),
        properties={"provider": provider} | spec.to_properties(),
    )


def list_inputs(spec: AttentionSpec) -> Tensors:
    """Datatypes and shapes of all inputs; -1 is any size, and the first axis is the batch."""
    return {
        QUERY: ("FP32", [-1, -1, spec.d_model]),
        KEY: ("FP32", [-1, -1, spec.kdim]),
        VALUE: ("FP32", [-1, -1, spec.vdim]),
        MASK: ("BOOL", [-1, 1, -1, -1]),
        KEY_MASK: ("BOOL", [-1, -1]),
        BIAS: ("FP32", [-1, 1, -1, -1]),
    }


def list_outputs(spec: AttentionSpec) -> Tensors:
    """Datatypes and shapes of all outputs."""
    return {
        OUTPUT: ("FP32", [-1, -1, spec.d_model]),
        WEIGHTS: ("FP32", [-1, spec.num_heads, -1, -1]),
    }


def list_tensors(tensors: Tensors) -> list[TensorMetadata]:
    """The entries of a metadata answer."""
    return [
        TensorMetadata(name=name, datatype=datatype, shape=shape)
        for name, (datatype, shape) in tensors.items()
    ]
