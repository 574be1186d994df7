"""The OpenAPI description of the endpoints that read their bodies themselves."""

from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import models_json_schema

from service.engine.repository import Repository
from service.examples import make_attention_example, make_infer_example
from service.protocol.attention_schema import AttentionAnswer, AttentionBody
from service.protocol.forms import MEDIA_TYPES
from service.protocol.v2_request import HEADER_LENGTH
from service.protocol.v2_schema import ErrorBody, InferRequest, InferResponse

TITLE: Final = "Limelight"
SUMMARY: Final = "Multi-head attention over HTTP, with the weights of every head if you ask."
BINARY: Final[dict[str, Any]] = {"schema": {"type": "string", "format": "binary"}}
SCHEMAS: Final = (AttentionAnswer, AttentionBody, ErrorBody, InferRequest, InferResponse)

ERRORS: Final = {
    400: "The request breaks the protocol or the tensor contract.",
    404: "No such model or version.",
    413: "Body, tokens, scores or answer are beyond a setting.",
    415: "An encoding or media type that is not read or written.",
    501: "A part of the protocol that is not offered.",
    503: "Busy, starting or stopping; try again later.",
}
ANSWER_HEADERS: Final = {
    "Server-Timing": "Milliseconds of waiting for a thread, and of computing.",
    "Limelight-Graph": "The ONNX graph that ran.",
    "Limelight-Converted": "Tensors that /v1 converted to FP32, each with the datatype that came.",
    "X-Request-Id": "That of the request, or a new one.",
}
HEADER_LENGTH_PARAMETER: Final[dict[str, Any]] = {
    "name": HEADER_LENGTH,
    "in": "header",
    "description": "How many bytes of the body are JSON, where binary data follows them.",
    "schema": {"type": "integer", "minimum": 1},
}


def refer(schema: type) -> dict[str, Any]:
    """The content entry of a JSON message."""
    return {"schema": {"$ref": f"#/components/schemas/{schema.__name__}"}}


def list_answers(content: dict[str, Any]) -> dict[int | str, dict[str, Any]]:
    """The responses of an inference endpoint: the answer, and every error."""
    errors: dict[int | str, dict[str, Any]] = {
        status: {"description": text, "content": {"application/json": refer(ErrorBody)}}
        for status, text in ERRORS.items()
    }
    headers = {
        name: {"description": text, "schema": {"type": "string"}}
        for name, text in ANSWER_HEADERS.items()
    }
    answer = {"description": "The answer.", "content": content, "headers": headers}
    return {200: answer, **errors}


def list_options() -> list[dict[str, Any]]:
    """The query string of /v1/attention."""
    causal = ["true", "false", "top_left", "bottom_right"]
    options: dict[str, tuple[str, list[str]]] = {
        "causal": ("Let a query see no later keys; true is top_left.", causal),
        "weights": ("Attention weights in the answer.", ["none", "per_head", "mean"]),
        "format": ("Form of the answer; that of the request unless given.", list(MEDIA_TYPES)),
        "model": ("Name of the model; the only or default one unless given.", []),
        "version": ("Version of the model; the highest unless given.", []),
    }
    return [
        {
            "name": name,
            "in": "query",
            "description": text,
            "schema": {"type": "string"} | ({"enum": values} if values else {}),
        }
        for name, (text, values) in options.items()
    ]


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


def describe(app: FastAPI, repository: Repository) -> dict[str, Any]:
    """The whole description, with examples for the first model; kept once there is one."""
    if app.openapi_schema is None:
        document = get_openapi(
            title=app.title, version=app.version, summary=SUMMARY, routes=app.routes
        )
        template = "#/components/schemas/{model}"
        _, messages = models_json_schema(
            [(schema, "validation") for schema in SCHEMAS], ref_template=template
        )
        schemas = document.setdefault("components", {}).setdefault("schemas", {})
        document["components"]["schemas"] = messages["$defs"] | schemas
        drop_unreachable(document)
        if not repository.names:
            return document
        add_examples(document, repository)
        app.openapi_schema = document
    return app.openapi_schema


def drop_unreachable(document: dict[str, Any]) -> None:
    """Remove FastAPI's 422, which no endpoint answers: path parameters are plain strings."""
    for path in document["paths"].values():
        for operation in path.values():
            operation["responses"].pop("422", None)
    for name in ("HTTPValidationError", "ValidationError"):
        document["components"]["schemas"].pop(name, None)


def add_examples(document: dict[str, Any], repository: Repository) -> None:
    """Let every path and body be tried with a model that is served."""
    model = repository.get(repository.names[0])
    is_alone = len(repository.names) == 1
    bodies = {
        AttentionBody: make_attention_example(model.spec, None if is_alone else model.name),
        InferRequest: make_infer_example(model.spec),
    }
    for path in document["paths"].values():
        for operation in path.values():
            for parameter in operation.get("parameters", []):
                if parameter["in"] == "path":
                    named = parameter["name"] == "name"
                    parameter["example"] = model.name if named else model.version
            content = operation.get("requestBody", {}).get("content", {})
            for schema, body in bodies.items():
                if content.get("application/json") == refer(schema):
                    content["application/json"] = {**refer(schema), "example": body}
