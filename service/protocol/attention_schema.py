"""The messages of /v1/attention as pydantic models: OpenAPI comes from them."""

from typing import Annotated, Literal, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
)

from service.protocol.shapes import MAX_AXIS

Item = TypeVar("Item")
Some = Annotated[list[Item], Field(min_length=1)]

Number = StrictInt | StrictFloat
Flag = (
    StrictBool
    | Annotated[StrictInt, Field(ge=0, le=1)]
    | Annotated[StrictFloat, Field(ge=0, le=1, multiple_of=1)]
)
Plane = Some[Some[Number]]
Tokens = Plane | Some[Plane]
Bias = Plane | Some[Plane] | Some[Some[Plane]]
FlagPlane = Some[Some[Flag]]
Mask = FlagPlane | Some[FlagPlane] | Some[Some[FlagPlane]]
Head = Annotated[StrictInt, Field(ge=0, le=MAX_AXIS)]
Rows = list[list[float]]
KeyRows = list[list[int]]


def check_unique(heads: list[int]) -> list[int]:
    """The same numbers, all different.

    Raises:
        ValueError: if one comes twice.
    """
    if len(set(heads)) != len(heads):
        raise ValueError("numbers of heads must be unique")
    return heads


Heads = Annotated[
    Some[Head], Field(json_schema_extra={"uniqueItems": True}), AfterValidator(check_unique)
]


class AttentionBody(BaseModel):
    """Nested lists, with or without a batch axis; the same for all tensors.

    `mask`: true lets a query see a key. `key_mask`: true is a real key, false is padding.
    `bias` is added to the scaled scores; -1e30 and less hides. `heads` are the numbers of those
    whose weights are wanted; `top_k` goes with weights "top_k" and is how many keys of each row.
    """

    model_config = ConfigDict(extra="forbid")

    query: Tokens
    key: Tokens | None = None
    value: Tokens | None = None
    mask: Mask | None = None
    key_mask: Some[Flag] | FlagPlane | None = None
    bias: Bias | None = None
    causal: StrictBool | Literal["top_left", "bottom_right"] | None = None
    weights: Literal["none", "per_head", "mean", "top_k"] | None = None
    heads: Heads | None = None
    top_k: Annotated[StrictInt, Field(ge=1, le=MAX_AXIS)] | None = None
    model: StrictStr | None = None
    version: StrictStr | None = None


class AttentionAnswer(BaseModel):
    """Output, and the weights if they were asked for, nested as the request was."""

    model_name: str
    model_version: str
    graph: str
    converted: dict[str, str]
    output: Rows | list[Rows]
    attention_weights: Rows | list[Rows] | list[list[Rows]] | None = None
    top_k_weights: list[Rows] | list[list[Rows]] | None = None
    top_k_keys: list[KeyRows] | list[list[KeyRows]] | None = None
