"""The OpenAPI description of the endpoints that read their bodies themselves."""

import copy
from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import models_json_schema

from service.engine.model import Model
from service.engine.repository import Repository
from service.examples import make_attention_example, make_infer_example
from service.inference import WEIGHTS_FORMS
from service.openapi_access import add_access
from service.protocol.attention_schema import AttentionAnswer, AttentionBody
from service.protocol.forms import MEDIA_TYPES
from service.protocol.shapes import MAX_AXIS
from service.protocol.v2_request import HEADER_LENGTH
from service.protocol.v2_schema import ErrorBody, InferRequest, InferResponse
from service.protocol.v2_settings import LogUpdate, TraceUpdate
from service.protocol.weights_options import HEADS_TEXT

TITLE: Final = "Limelight"
SUMMARY: Final = "Multi-head attention over HTTP, with the weights of every head if you ask."
BINARY: Final[dict[str, Any]] = {"schema": {"type": "string", "format": "binary"}}
SCHEMAS: Final = (
    AttentionAnswer,
    AttentionBody,
    ErrorBody,
    InferRequest,
    InferResponse,
    LogUpdate,
    TraceUpdate,
)

ERRORS: Final = {
    400: "The request breaks the protocol or the tensor contract.",
    404: "No such model or version.",
    408: "The body did not come in time.",
    413: "Body, tokens, scores or answer are beyond a setting.",
    415: "An encoding or media type that is not read or written.",
    501: "A part of the protocol that is not offered.",
    503: "Busy, starting or stopping; try again later.",
}
ANSWER_HEADERS: Final = {
    "Content-Encoding": "gzip or deflate, where Accept-Encoding names one of them and no other.",
    "Server-Timing": "Milliseconds of waiting for a thread, and of computing.",
    "Limelight-Graph": "The ONNX graph that ran.",
    "Limelight-Converted": "Tensors that /v1 converted to FP32, each with the datatype that came.",
    "X-Request-Id": "That of the request, or a new one.",
}
HEADER_LENGTH_PARAMETER: Final[dict[str, Any]] = {
    "name": HEADER_LENGTH,
    "in": "header",
    "description": (
        "How many bytes of the body, after inflating, are JSON, where binary data follows them."
    ),
    "schema": {"type": "integer", "minimum": 1},
}


def refer(schema: type) -> dict[str, Any]:
    """The content entry of a JSON message."""
    return {"schema": {"$ref": f"#/components/schemas/{schema.__name__}"}}


def list_errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The responses of these statuses."""
    return {
        status: {"description": ERRORS[status], "content": {"application/json": refer(ErrorBody)}}
        for status in statuses
    }


def list_answers(content: dict[str, Any]) -> dict[int | str, dict[str, Any]]:
    """The responses of an inference endpoint: the answer, and every error."""
    headers = {
        name: {"description": text, "schema": {"type": "string"}}
        for name, text in ANSWER_HEADERS.items()
    }
    answer = {"description": "The answer.", "content": content, "headers": headers}
    return {200: answer, **list_errors(*ERRORS)}


def describe_update(schema: type, example: dict[str, Any], *statuses: int) -> dict[str, Any]:
    """An endpoint that reads settings, if there is a body, of any Content-Type.

    Args:
        schema: of the body.
        example: of the body.
        *statuses: of errors beside those of every update.
    """
    content = {"application/json": {**refer(schema), "example": example}}
    return {
        "responses": list_errors(400, 408, 413, 415, 501, *statuses),
        "openapi_extra": {"requestBody": {"required": False, "content": content}},
    }


def list_options() -> list[dict[str, Any]]:
    """The query string of /v1/attention."""
    options: dict[str, tuple[str, dict[str, Any]]] = {
        "causal": (
            "Let a query see no later keys; true is top_left. As the model says unless given.",
            list_words("true", "false", "top_left", "bottom_right"),
        ),
        "weights": ("Attention weights in the answer.", list_words(*WEIGHTS_FORMS)),
        "heads": (
            "Heads whose weights are wanted, as 0,3; all of them unless given.",
            {"type": "string", "pattern": f"^{HEADS_TEXT}$"},
        ),
        "top_k": (
            'How many keys of each row, with weights "top_k".',
            {"type": "integer", "minimum": 1, "maximum": MAX_AXIS},
        ),
        "format": (
            "Form of the answer; that of the request unless given.",
            list_words(*MEDIA_TYPES),
        ),
        "model": ("Name of the model; the only or default one unless given.", list_words()),
        "version": ("Version of the model; the highest unless given.", list_words()),
    }
    return [
        {"name": name, "in": "query", "description": text, "schema": schema}
        for name, (text, schema) in options.items()
    ]


def list_words(*words: str) -> dict[str, Any]:
    """The schema of a text that is one of some words, or any where there are none."""
    return {"type": "string"} | ({"enum": list(words)} if words else {})


# Both endpoints take bodies of several kinds and any Content-Type that real clients send, so
# FastAPI is told what they are instead of reading them itself.
INFER: Final[dict[str, Any]] = {
    "responses": list_answers(
        {"application/json": refer(InferResponse), "application/octet-stream": BINARY}
    ),
    "openapi_extra": {
        "parameters": [HEADER_LENGTH_PARAMETER],
        "requestBody": {
            "required": True,
            "content": {
                "application/json": refer(InferRequest),
                "application/octet-stream": BINARY,
            },
        },
    },
}
ATTENTION: Final[dict[str, Any]] = {
    "responses": list_answers(
        {
            MEDIA_TYPES["json"]: refer(AttentionAnswer),
            MEDIA_TYPES["npz"]: BINARY,
            MEDIA_TYPES["safetensors"]: BINARY,
        }
    ),
    "openapi_extra": {
        "parameters": list_options(),
        "requestBody": {
            "required": True,
            "content": {
                MEDIA_TYPES["json"]: refer(AttentionBody),
                MEDIA_TYPES["npz"]: BINARY,
                MEDIA_TYPES["safetensors"]: BINARY,
            },
        },
    },
}
TRACE_UPDATE: Final = describe_update(TraceUpdate, {"trace_level": ["OFF"]})
MODEL_TRACE_UPDATE: Final = describe_update(TraceUpdate, {"trace_level": ["OFF"]}, 404, 503)
LOG_UPDATE: Final = describe_update(LogUpdate, {"log_error": True})
REGISTRATION: Final[dict[str, Any]] = {"status_code": 501, "response_model": ErrorBody}


def describe(app: FastAPI, repository: Repository) -> dict[str, Any]:
    """The whole description, with examples for the first model that is served now."""
    if app.openapi_schema is None:
        app.openapi_schema = describe_paths(app)
    models = repository.models
    if not models:
        return app.openapi_schema
    document = copy.deepcopy(app.openapi_schema)
    add_examples(document, models[0], is_alone=len({model.name for model in models}) == 1)
    return document


def describe_paths(app: FastAPI) -> dict[str, Any]:
    """All paths and messages, without examples."""
    document = get_openapi(title=app.title, version=app.version, summary=SUMMARY, routes=app.routes)
    template = "#/components/schemas/{model}"
    _, messages = models_json_schema(
        [(schema, "validation") for schema in SCHEMAS], ref_template=template
    )
    schemas = document.setdefault("components", {}).setdefault("schemas", {})
    document["components"]["schemas"] = messages["$defs"] | schemas
    drop_unreachable(document)
    add_access(document, app.state.service.settings, {"application/json": refer(ErrorBody)})
    return document


def drop_unreachable(document: dict[str, Any]) -> None:
    """Remove FastAPI's 422, which no endpoint answers: path parameters are plain strings."""
    for path in document["paths"].values():
        for operation in path.values():
            operation["responses"].pop("422", None)
    for name in ("HTTPValidationError", "ValidationError"):
        document["components"]["schemas"].pop(name, None)


def add_examples(document: dict[str, Any], model: Model, *, is_alone: bool) -> None:
    """Let every path and body be tried with a model that is served."""
    bodies = {
        AttentionBody: make_attention_example(model.spec, None if is_alone else model.name),
        InferRequest: make_infer_example(model.spec),
    }
    values = {"name": model.name, "version": model.version, "region": "region"}
    for path in document["paths"].values():
        for operation in path.values():
            for parameter in operation.get("parameters", []):
                if parameter["in"] == "path":
                    parameter["example"] = values[parameter["name"]]
            content = operation.get("requestBody", {}).get("content", {})
            for schema, body in bodies.items():
                if content.get("application/json") == refer(schema):
                    content["application/json"] = {**refer(schema), "example": body}
