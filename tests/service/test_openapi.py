"""The description of the API: complete, with examples that run."""

import json
from typing import Any

import pytest

from service.app import create_app
from service.engine.model import Model
from service.openapi import ATTENTION_EXAMPLE, INFER_EXAMPLE, describe
from service.protocol import attention_request, v2_request
from service.protocol.attention_schema import AttentionBody
from service.protocol.v2_schema import InferRequest
from service.settings import Settings


@pytest.fixture
def document(settings: Settings) -> dict[str, Any]:
    return describe(create_app(settings))


def find_references(node: Any) -> set[str]:
    if isinstance(node, list):
        return set().union(*map(find_references, node))
    if not isinstance(node, dict):
        return set()
    own = {node["$ref"]} if isinstance(node.get("$ref"), str) else set()
    return own.union(*map(find_references, node.values()))


def test_every_reference_leads_somewhere(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    references = find_references(document)
    assert references
    assert {reference.removeprefix("#/components/schemas/") for reference in references} <= set(
        schemas
    )


def test_every_operation_says_what_it_is_for(document: dict[str, Any]) -> None:
    for path, operations in document["paths"].items():
        for operation in operations.values():
            assert operation["description"], path
            assert "422" not in operation["responses"], path


@pytest.mark.parametrize("path", ["/v2/models/{name}/infer", "/v1/attention"])
def test_an_inference_endpoint_lists_every_error(document: dict[str, Any], path: str) -> None:
    responses = document["paths"][path]["post"]["responses"]
    assert set(responses) == {"200", "400", "404", "413", "415", "501", "503"}


def test_the_examples_are_answered(demo: Model) -> None:
    infer = v2_request.decode_request(json.dumps(INFER_EXAMPLE).encode(), [])
    attention = attention_request.decode_request(
        json.dumps(ATTENTION_EXAMPLE).encode(), "json", {}, 2**20
    )
    for asked in (infer.inference, attention.inference):
        assert demo.run(demo.check(asked)).tensors["output"].shape == (1, 2, 6)
    InferRequest.model_validate(INFER_EXAMPLE)
    AttentionBody.model_validate(ATTENTION_EXAMPLE)


def test_paths_can_be_tried_with_the_demo(document: dict[str, Any]) -> None:
    (name,) = document["paths"]["/v2/models/{name}"]["get"]["parameters"]
    assert name["example"] == "demo"


def test_it_is_made_once(settings: Settings) -> None:
    app = create_app(settings)
    assert describe(app) is describe(app)
