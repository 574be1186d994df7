"""What a server of the Open Inference Protocol V2 says of itself and of its models."""

from typing import Final

from model.contract import BIAS, KEY, KEY_MASK, MASK, OUTPUT, QUERY, VALUE, WEIGHTS, AttentionSpec
from service.protocol.v2_schema import Datatype, ModelMetadata, ServerMetadata, TensorMetadata

EXTENSIONS: Final = ("binary_tensor_data", "parameters")
PLATFORM: Final = "onnxruntime_onnx"


def describe_server(version: str) -> ServerMetadata:
    """Name, version, and the extensions that work."""
    return ServerMetadata(name="limelight", version=version, extensions=list(EXTENSIONS))


def describe_model(
    name: str, versions: list[str], spec: AttentionSpec, provider: str
) -> ModelMetadata:
    """Inputs and outputs of a model; a mask may have fewer axes than the four that are said."""
    inputs: dict[str, tuple[Datatype, list[int]]] = {
        QUERY: ("FP32", [-1, -1, spec.d_model]),
        KEY: ("FP32", [-1, -1, spec.kdim]),
        VALUE: ("FP32", [-1, -1, spec.vdim]),
        MASK: ("BOOL", [-1, 1, -1, -1]),
        KEY_MASK: ("BOOL", [-1, -1]),
        BIAS: ("FP32", [-1, 1, -1, -1]),
    }
    outputs: dict[str, tuple[Datatype, list[int]]] = {
        OUTPUT: ("FP32", [-1, -1, spec.d_model]),
        WEIGHTS: ("FP32", [-1, spec.num_heads, -1, -1]),
    }
    return ModelMetadata(
        name=name,
        versions=versions,
        platform=PLATFORM,
        inputs=list_tensors(inputs),
        outputs=list_tensors(outputs),
        properties={"provider": provider} | spec.to_properties(),
    )


def list_tensors(tensors: dict[str, tuple[Datatype, list[int]]]) -> list[TensorMetadata]:
    """The entries of a metadata answer."""
    return [
        TensorMetadata(name=name, datatype=datatype, shape=shape)
        for name, (datatype, shape) in tensors.items()
    ]
