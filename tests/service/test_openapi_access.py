"""The description of the API says of each operation which key it takes, where keys are set."""

from pathlib import Path
from typing import Any

import pytest

from service.app import create_app
from service.engine.repository import Repository
from service.openapi import describe
from service.settings import Settings

INFER, LOAD = "/v2/models/{name}/infer", "/v2/repository/models/{name}/load"
ERROR = {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorBody"}}}


@pytest.fixture(name="guarded")
def set_keys(settings: Settings, tmp_path: Path) -> Settings:
    """Settings with a file of keys."""
    file = tmp_path / "keys"
    file.write_text(f"infer:{'5e' * 32}")
    return settings.model_copy(update={"api_keys_file": file})


def read(settings: Settings) -> dict[str, Any]:
    """The description of a server."""
    return describe(create_app(settings), Repository())


def find_refusals(document: dict[str, Any], method: str, path: str) -> dict[str, str]:
    """The refusals of an operation, each with what it means."""
    responses = document["paths"][path][method]["responses"]
    return {s: responses[s]["description"] for s in ("401", "403") if s in responses}


def test_without_keys_there_is_no_scheme_and_nothing_asks_for_one(settings: Settings) -> None:
    document = read(settings)
    assert "securitySchemes" not in document["components"]
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            assert "security" not in operation, path
            another = {"403": "A page of another site sent this, and its origin is not listed."}
            assert find_refusals(document, method, path) == (another if method == "post" else {})


def test_with_keys_the_scheme_is_that_of_bearers(guarded: Settings) -> None:
    (scheme,) = read(guarded)["components"]["securitySchemes"].values()
    assert (scheme["type"], scheme["scheme"]) == ("http", "bearer")


@pytest.mark.parametrize(
    ("method", "path", "refusals"),
    [
        ("get", "/v2/health/live", {}),
        ("get", "/v2/models", {"401": "No key came, or one that is not known."}),
        ("get", "/metrics", {"401": "No key came, or one that is not known."}),
        ("post", INFER, {"401": "No key came, or one that is not known."}),
        (
            "post",
            LOAD,
            {
                "401": "No key came, or one that is not known.",
                "403": "The key has the role infer, and this needs admin.",
            },
        ),
    ],
)
def test_with_keys_an_operation_says_whom_it_refuses(
    guarded: Settings, method: str, path: str, refusals: dict[str, str]
) -> None:
    document = read(guarded)
    assert find_refusals(document, method, path) == refusals
    operation = document["paths"][path][method]
    assert operation.get("security", []) == ([{"key": []}] if refusals else [])
    assert all(operation["responses"][status]["content"] == ERROR for status in refusals)


def test_metrics_that_need_no_key_are_described_so(guarded: Settings) -> None:
    document = read(guarded.model_copy(update={"metrics_without_key": True}))
    assert "security" not in document["paths"]["/metrics"]["get"]
