"""The description of the API: complete, and with examples that run."""

import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import httpx
import pytest

from tests.integration.json_schema import find_faults, look_up

MODEL = "/v2/models/{name}"
VERSION = f"{MODEL}/versions/{{version}}"
SYSTEM, CUDA = "/v2/systemsharedmemory", "/v2/cudasharedmemory"
REGIONS = (f"{SYSTEM}/region/{{region}}", f"{CUDA}/region/{{region}}")
INFERENCE = {"/v1/attention", f"{MODEL}/infer", f"{VERSION}/infer"}
# Bodies that ask for something and change nothing.
QUESTIONS = {
    "/v2/logging",
    "/v2/repository/index",
    "/v2/trace/setting",
    f"{MODEL}/trace/setting",
}
# What is refused, or has nothing to do, whatever the body.
ACTIONS = {
    "/v2/repository/models/{name}/load",
    "/v2/repository/models/{name}/unload",
    f"{SYSTEM}/unregister",
    f"{CUDA}/unregister",
    *(f"{region}/{action}" for region in REGIONS for action in ("register", "unregister")),
}
PATHS = {
    "get": {
        "/metrics",
        "/v1/models/{name}/example",
        "/v1/models/{name}/versions/{version}/example",
        "/v2",
        "/v2/health/live",
        "/v2/health/ready",
        "/v2/logging",
        "/v2/models",
        "/v2/models/stats",
        "/v2/trace/setting",
        f"{MODEL}/trace/setting",
        *(
            f"{path}{end}"
            for path in (MODEL, VERSION)
            for end in ("", "/config", "/ready", "/stats")
        ),
        f"{SYSTEM}/status",
        f"{CUDA}/status",
        *(f"{region}/status" for region in REGIONS),
    },
    "post": INFERENCE | QUESTIONS | ACTIONS,
}
JSON = "application/json"
INFERENCE_STATUSES = {"200", "400", "404", "408", "413", "415", "501", "503"}


@pytest.fixture(scope="module", name="document")
def read_document(client: httpx.Client) -> dict[str, Any]:
    """The OpenAPI description."""
    response = client.get("/openapi.json")
    assert response.status_code == 200
    return dict(response.json())


def list_operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Method, path and description of every operation."""
    for path, item in document["paths"].items():
        for method, operation in item.items():
            yield method, path, operation


def fill_in(path: str, operation: dict[str, Any]) -> str:
    """The path with the examples of its parameters."""
    for parameter in operation.get("parameters", []):
        if parameter["in"] == "path":
            path = path.replace(f"{{{parameter['name']}}}", parameter["example"])
    return path


def list_examples(content: dict[str, Any]) -> list[Any]:
    """The examples of one media type of a body."""
    named = [example["value"] for example in content.get("examples", {}).values()]
    return named + ([content["example"]] if "example" in content else [])


def test_every_endpoint_is_described(document: dict[str, Any]) -> None:
    described: dict[str, set[str]] = {}
    for method, path, _ in list_operations(document):
        described.setdefault(method, set()).add(path)
    assert described == PATHS


def test_the_description_names_the_product(document: dict[str, Any]) -> None:
    assert document["info"]["title"] == "Limelight"
    assert document["info"]["version"].count(".") == 2
    assert document["info"]["summary"]


def test_every_operation_says_what_it_is_for(document: dict[str, Any]) -> None:
    for method, path, operation in list_operations(document):
        assert operation["description"], (method, path)
        assert operation["tags"], (method, path)


def test_every_operation_has_a_name_of_its_own(document: dict[str, Any]) -> None:
    names = [operation["operationId"] for _, _, operation in list_operations(document)]
    assert len(set(names)) == len(names)


def test_every_reference_leads_somewhere(document: dict[str, Any]) -> None:
    for reference in re.findall(r"'\$ref': '([^']+)'", str(document)):
        assert look_up(reference, document)


def test_inference_lists_every_status_that_it_can_answer(
    document: dict[str, Any], auth_headers: Mapping[str, str]
) -> None:
    refusal = "401" if auth_headers else "403"
    for path in INFERENCE:
        responses = document["paths"][path]["post"]["responses"]
        assert set(responses) == INFERENCE_STATUSES | {refusal}


def test_every_error_is_described_as_the_body_of_errors(document: dict[str, Any]) -> None:
    for _, _, operation in list_operations(document):
        for status, response in operation["responses"].items():
            if status >= "400":
                schema = response["content"][JSON]["schema"]
                assert find_faults({"error": "text"}, schema, document) == []
                assert find_faults({"detail": "text"}, schema, document) != []


def test_only_parameters_that_exist_are_described(document: dict[str, Any]) -> None:
    for method, path, operation in list_operations(document):
        in_query = {p["name"] for p in operation.get("parameters", []) if p["in"] == "query"}
        wanted = {"causal", "weights", "heads", "top_k", "format", "model", "version"}
        assert in_query == (wanted if path == "/v1/attention" else set()), (method, path)
        in_path = {p["name"] for p in operation.get("parameters", []) if p["in"] == "path"}
        assert in_path == set(re.findall(r"{(\w+)}", path))


@pytest.mark.parametrize("path", sorted(PATHS["get"]))
def test_every_page_answers_as_described(
    client: httpx.Client, document: dict[str, Any], path: str
) -> None:
    operation = document["paths"][path]["get"]
    response = client.get(fill_in(path, operation))
    content = operation["responses"][str(response.status_code)]["content"]
    media_type = response.headers["Content-Type"].partition(";")[0]
    assert response.status_code == 200
    assert media_type in content
    if media_type == JSON:
        assert find_faults(response.json(), content[JSON]["schema"], document) == []


@pytest.mark.parametrize("path", sorted(INFERENCE | QUESTIONS))
def test_every_example_runs_and_is_answered_as_described(
    client: httpx.Client, document: dict[str, Any], path: str
) -> None:
    operation = document["paths"][path]["post"]
    request = operation["requestBody"]["content"][JSON]
    examples = list_examples(request)
    assert examples
    for example in examples:
        assert find_faults(example, request["schema"], document) == []
        response = client.post(fill_in(path, operation), json=example)
        assert response.status_code == 200, response.text
        schema = operation["responses"]["200"]["content"][JSON]["schema"]
        assert find_faults(response.json(), schema, document) == []


@pytest.mark.parametrize("path", sorted(ACTIONS))
def test_every_action_is_answered_as_described(
    client: httpx.Client, document: dict[str, Any], path: str
) -> None:
    if "repository" in path and "model_repository" in client.get("/v2").json()["extensions"]:
        pytest.skip("it would load or unload a model of a deployed server")
    operation = document["paths"][path]["post"]
    response = client.post(fill_in(path, operation))
    described = operation["responses"][str(response.status_code)]["content"][JSON]["schema"]
    assert find_faults(response.json(), described, document) == []


@pytest.mark.parametrize("path", sorted(QUESTIONS))
def test_a_body_of_questions_may_be_left_out(
    client: httpx.Client, document: dict[str, Any], path: str
) -> None:
    operation = document["paths"][path]["post"]
    assert operation["requestBody"]["required"] is False
    assert client.post(fill_in(path, operation)).status_code == 200


@pytest.mark.parametrize("path", sorted(INFERENCE))
def test_bodies_that_the_description_forbids_are_refused(
    client: httpx.Client, document: dict[str, Any], path: str
) -> None:
    operation = document["paths"][path]["post"]
    request = operation["requestBody"]["content"][JSON]
    faults = partial(find_faults, schema=request["schema"], document=document)
    example = list_examples(request)[0]
    for member in [name for name in ("query", "inputs") if name in example]:
        misfits: tuple[Any, ...] = (None, 5, "x", [["x"]], {})
        for wrong in misfits:
            body = example | {member: wrong}
            assert faults(body) != []
            assert client.post(fill_in(path, operation), json=body).status_code == 400


@pytest.mark.parametrize("path", sorted(QUESTIONS))
def test_questions_that_the_description_forbids_are_refused(
    client: httpx.Client, document: dict[str, Any], path: str
) -> None:
    operation = document["paths"][path]["post"]
    schema = operation["requestBody"]["content"][JSON]["schema"]
    members = look_up(schema["$ref"], document) if "$ref" in schema else schema
    misfits: list[Any] = [5, "x", [], *({name: {}} for name in members["properties"])]
    for body in misfits:
        assert find_faults(body, schema, document) != []
        assert client.post(fill_in(path, operation), json=body).status_code == 400, body


@pytest.mark.parametrize("path", ["/v2/models/demo", "/v2/models/demo/ready"])
def test_query_strings_that_the_protocol_does_not_know_are_ignored(
    client: httpx.Client, path: str
) -> None:
    assert client.get(path, params={"version": "99", "x": "y"}).status_code == 200


def test_a_query_string_does_not_choose_the_version_of_inference(client: httpx.Client) -> None:
    body = {"inputs": [{"name": "query", "shape": [1, 1, 6], "datatype": "FP32", "data": [1] * 6}]}
    response = client.post("/v2/models/demo/infer", params={"version": "99"}, json=body)
    assert response.status_code == 200


@pytest.mark.parametrize("path", ["/docs", "/"])
def test_a_page_refers_to_no_other_host(client: httpx.Client, path: str) -> None:
    response = client.get(path)
    assert response.status_code == 200
    assert response.headers["Content-Type"].startswith("text/html")
    assert not re.findall(r"""(?:src|href|url)\s*[=:]\s*["'](?:\w+:)?//""", response.text)


@pytest.mark.parametrize("path", ["/docs", "/"])
def test_everything_that_a_page_loads_is_served_here(client: httpx.Client, path: str) -> None:
    page = client.get(path)
    links = re.findall(r"""(?:src|href|url)\s*[=:]\s*["']([^"'#]+)["']""", page.text)
    for link in links:
        response = client.get(str(page.url.join(link).raw_path, "ascii"))
        assert response.status_code == 200, link
        assert response.content, link
    if path == "/docs":
        assert "openapi.json" in links
        assert any(link.endswith(".js") for link in links)
        assert any(link.endswith(".css") for link in links)
