"""The description of the API: complete, with examples that run."""

import json
from pathlib import Path
from typing import Any

import pytest

from model.contract import AttentionSpec
from service.app import create_app
from service.engine.model import Model
from service.engine.repository import Repository
from service.engine.session import Session
from service.engine.sizes import Limits
from service.openapi import describe
from service.protocol import attention_request, v2_request
from service.protocol.attention_schema import AttentionBody
from service.protocol.v2_schema import InferRequest
from service.settings import Settings


@pytest.fixture
def document(settings: Settings, demo: Model) -> dict[str, Any]:
    return describe(create_app(settings), serving(demo))


def serving(*models: Model) -> Repository:
    repository = Repository()
    for model in models:
        repository.add(model)
    return repository


def open_nothing(_: Path) -> Session:
    raise NotImplementedError


def find_example(document: dict[str, Any], path: str) -> dict[str, Any]:
    body = document["paths"][path]["post"]["requestBody"]
    return dict(body["content"]["application/json"]["example"])


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
    assert set(responses) == {"200", "400", "403", "404", "408", "413", "415", "501", "503"}


@pytest.mark.parametrize("path", ["/v2/models/{name}/infer", "/v1/attention"])
def test_an_inference_endpoint_names_the_headers_of_its_answer(
    document: dict[str, Any], path: str
) -> None:
    answer = document["paths"][path]["post"]["responses"]["200"]
    assert {"Server-Timing", "Limelight-Graph", "X-Request-Id"} <= set(answer["headers"])


def test_the_examples_are_answered(document: dict[str, Any], demo: Model) -> None:
    for_v2 = find_example(document, "/v2/models/{name}/infer")
    for_v1 = find_example(document, "/v1/attention")
    infer = v2_request.decode_request(json.dumps(for_v2).encode(), [])
    attention = attention_request.decode_request(json.dumps(for_v1).encode(), "json", {}, 2**20)
    for asked in (infer.inference, attention.inference):
        assert demo.run(demo.check(asked)).tensors["output"].shape == (1, 2, 6)
    InferRequest.model_validate(for_v2)
    AttentionBody.model_validate(for_v1)


def test_paths_can_be_tried_with_a_model_that_is_served(document: dict[str, Any]) -> None:
    name, version = document["paths"]["/v2/models/{name}/versions/{version}"]["get"]["parameters"]
    assert (name["example"], version["example"]) == ("demo", "1")


def test_of_several_models_the_example_names_one(
    settings: Settings, demo: Model, limits: Limits
) -> None:
    other = Model(Path("/m/zebra/1"), AttentionSpec(8, 2), "cpu", open_nothing, limits)
    document = describe(create_app(settings), serving(demo, other))
    assert find_example(document, "/v1/attention")["model"] == "demo"


def test_its_examples_follow_what_is_served(
    settings: Settings, demo: Model, limits: Limits
) -> None:
    app = create_app(settings)
    other = Model(Path("/m/zebra/1"), AttentionSpec(8, 2), "cpu", open_nothing, limits)
    for models, name in (((), None), ((other,), "zebra"), ((demo,), "demo"), ((), None)):
        document = describe(app, serving(*models))
        path = document["paths"]["/v2/models/{name}"]["get"]["parameters"][0]
        assert path.get("example") == name
        assert ("example" in json.dumps(document["paths"]["/v1/attention"])) is bool(models)
