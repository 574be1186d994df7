"""The messages of the Open Inference Protocol V2 as pydantic models: OpenAPI comes from them."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt, StrictStr
from typing_extensions import TypeAliasType

from service.protocol.shapes import MAX_AXES, MAX_AXIS
from service.protocol.v2_schedule import MAX_PRIORITY, MAX_TIMEOUT_US
from service.protocol.weights_options import HEADS_TEXT

ParameterValue = StrictStr | StrictBool | StrictInt | StrictFloat
Scalar = StrictBool | StrictInt | StrictFloat
Data = TypeAliasType("Data", "list[StrictBool | StrictInt | StrictFloat | Data]")
Size = Annotated[StrictInt, Field(ge=0, le=MAX_AXIS)]
Datatype = Literal[
    "BOOL", "UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64",
    "FP16", "FP32", "FP64",
]  # fmt: skip


class ErrorBody(BaseModel):
    """What every error says."""

    error: str


class Live(BaseModel):
    """Answer of the liveness probe."""

    live: bool


class Ready(BaseModel):
    """Answer of the readiness probe."""

    ready: bool


class ServerMetadata(BaseModel):
    """Name, version and extensions of the server."""

    name: str
    version: str
    extensions: list[str]


class ModelList(BaseModel):
    """Names of the models that are served."""

    models: list[str]


class ModelReady(BaseModel):
    """Whether a model answers."""

    name: str
    ready: bool


class TensorMetadata(BaseModel):
    """Name, datatype and shape of a tensor; -1 is any size."""

    name: str
    datatype: Datatype
    shape: list[int]


class ModelMetadata(BaseModel):
    """What a model takes and gives, and where it computes."""

    name: str
    versions: list[str]
    platform: str
    inputs: list[TensorMetadata]
    outputs: list[TensorMetadata]
    properties: dict[str, str]


class Parameters(BaseModel):
    """Parameters: strings, numbers and booleans; unknown ones are left alone."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, ParameterValue]


class InputParameters(Parameters):
    """Parameters of an input."""

    binary_data_size: StrictInt = Field(default_factory=int, ge=0)


class OutputParameters(Parameters):
    """Parameters of an output that is asked for."""

    binary_data: StrictBool = False


class RequestParameters(Parameters):
    """Parameters of a request; the first four are those of the tensor contract.

    `heads` are the numbers of those whose weights are wanted, with commas between them. `top_k`
    goes with weights "top_k": how many keys of each row.

    `timeout` is the longest time in the queue, in microseconds. Priority 1 goes first, then 2 and
    so on; 0 goes after all of them.
    """

    # Made, not said, so that the schema shows no default: the model has one of its own.
    causal: StrictBool | Literal["top_left", "bottom_right"] = Field(default_factory=bool)
    weights: Literal["none", "per_head", "mean", "top_k"] = "per_head"
    heads: StrictStr = Field(default_factory=str, pattern=f"^{HEADS_TEXT}$")
    top_k: StrictInt = Field(default_factory=int, ge=1, le=MAX_AXIS)
    binary_data_output: StrictBool = False
    timeout: StrictInt = Field(0, ge=0, le=MAX_TIMEOUT_US)
    priority: StrictInt = Field(0, ge=0, le=MAX_PRIORITY)


class InferInput(BaseModel):
    """One input: `data` as flat or nested JSON, or `binary_data_size` bytes behind the JSON."""

    model_config = ConfigDict(extra="allow")

    name: Annotated[StrictStr, Field(min_length=1)]
    shape: Annotated[list[Size], Field(max_length=MAX_AXES)]
    datatype: Datatype
    parameters: InputParameters | None = None
    data: Data = Field(default_factory=list)


class WantedOutput(BaseModel):
    """One output that is asked for; parameter `binary_data` asks for bytes."""

    model_config = ConfigDict(extra="allow")

    name: Literal["output", "attention_weights", "top_k_weights", "top_k_keys"]
    parameters: OutputParameters | None = None


class InferRequest(BaseModel):
    """A request."""

    model_config = ConfigDict(extra="allow")

    id: StrictStr | None = None
    parameters: RequestParameters | None = None
    inputs: list[InferInput]
    outputs: list[WantedOutput] | None = None


class InferOutput(BaseModel):
    """One output: flat `data`, or `binary_data_size` bytes behind the JSON."""

    name: str
    shape: list[int]
    datatype: Datatype
    parameters: dict[str, int] | None = None
    data: list[float] | None = None


class InferResponse(BaseModel):
    """An answer."""

    model_name: str
    model_version: str
    id: str | None = None
    outputs: list[InferOutput]
