"""Whether a parser and the model that OpenAPI is made from say the same of a body.

A model cannot say everything: the refusals that it leaves to the parser are listed below, each with
its reason. Beside them, both refuse a body or neither does.
"""

import json
import re
from collections.abc import Callable
from enum import Enum
from typing import Any

from pydantic import BaseModel, ValidationError

from model.contract import AttentionSpec
from service.engine.signature import check_request
from service.engine.sizes import Limits
from service.errors import ServiceError
from service.protocol import attention_request, v2_request
from service.protocol.attention_schema import AttentionBody
from service.protocol.v2_schema import InferRequest

B, L, S, D, H = 2, 2, 3, 2, 1
SPEC, LIMITS = AttentionSpec(D, H), Limits(8, 1000, 10**6, 10**6)

BEYOND_A_SCHEMA = [
    # 501: a part of the protocol that exists, but is not offered.
    r"^NotOfferedError",
    # A list's length depends on the shape, or on the lists beside it.
    r"has \d+ elements, expected",
    r"beside each other at depth",
    r"has numbers beside lists",
    # Members of one object that depend on each other: JSON Schema could say it, and nobody read it.
    r"change one of the two",
    # JSON Schema could say float32's range, but nobody could read it.
    r"which FP32 cannot hold",
]
BEYOND_A_SCHEMA_OF_V2 = [
    *BEYOND_A_SCHEMA,
    # The values allowed depend on the member `datatype`: twelve copies of an input.
    r"holds (a boolean|the number|-?\d)",
    r"FP16, which has no JSON form",
    # One of two members, each of which may be absent.
    r"has neither 'data' nor|has both 'data' and",
    # Bytes that follow the JSON.
    r"bytes follow the JSON|behind the JSON|has binary_data_size",
    # Items of a list that differ in one member.
    r"comes twice",
    # Names of parameters that begin as Triton's own do.
    r"is reserved",
    # A product of sizes.
    r"which no array can have",
]
BEYOND_A_SCHEMA_OF_V1 = [
    *BEYOND_A_SCHEMA,
    # Sizes of one tensor depend on another's and on the model.
    r"has shape|has batch size|tokens, expected|beside a query without a batch axis",
]


class Verdict(Enum):
    """What came out of a comparison."""

    BOTH_ACCEPT = "both accept"
    BOTH_REFUSE = "both refuse"
    BEYOND_A_SCHEMA = "beyond a schema"


def parse_v2(text: bytes) -> object:
    """Accept or refuse a V2 request."""
    return v2_request.decode_request(text, [])


def parse_v1(text: bytes) -> object:
    """Accept or refuse a request of /v1/attention, by the contract too."""
    asked = attention_request.decode_request(text, "json", {}, 10**6)
    return check_request(SPEC, LIMITS, asked.inference)


def refuse_by_parser(parse: Callable[[bytes], object], text: bytes) -> str:
    """What the parser says against a body; nothing if it takes it."""
    try:
        parse(text)
    except ServiceError as error:
        return f"{type(error).__name__}: {error}"
    return ""


def refuse_by_model(model: type[BaseModel], text: bytes) -> str:
    """What the model says against a body; nothing if it takes it."""
    try:
        model.model_validate_json(text)
    except ValidationError as error:
        return str(error)
    return ""


def compare_v2(body: dict[str, Any]) -> Verdict:
    """Hold a V2 request against parser and model."""
    return compare(body, parse_v2, InferRequest, BEYOND_A_SCHEMA_OF_V2)


def compare_v1(body: dict[str, Any]) -> Verdict:
    """Hold a request of /v1/attention against parser, contract and model."""
    return compare(body, parse_v1, AttentionBody, BEYOND_A_SCHEMA_OF_V1)


def compare(
    body: dict[str, Any],
    parse: Callable[[bytes], object],
    model: type[BaseModel],
    beyond_a_schema: list[str],
) -> Verdict:
    """What parser and model say, which is the same."""
    text = json.dumps(body).encode()
    by_parser, by_model = refuse_by_parser(parse, text), refuse_by_model(model, text)
    if any(re.search(refusal, by_parser) for refusal in beyond_a_schema):
        return Verdict.BEYOND_A_SCHEMA
    assert bool(by_parser) == bool(by_model), (body, by_parser, by_model)
    return Verdict.BOTH_REFUSE if by_parser else Verdict.BOTH_ACCEPT
