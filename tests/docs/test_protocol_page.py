"""docs/protocol.md says what the server does: its tables are compared with it, row by row."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import httpx
import pytest
from fastapi.routing import iter_route_contexts

from service.app import create_app
from service.datatypes import DTYPES
from service.engine.model_config import ModelConfig, parse_model_config
from service.http.access import Access
from service.protocol.v2_outputs import OUTPUTS
from service.settings import PREFIX, Settings
from tests.docs.markdown import (
    ROOT,
    find_tests,
    is_test,
    read_blocks,
    read_section,
    read_table,
    strip_comments,
)
from tests.docs.protocol_checks import BODY, DIFFERENCES, PARAMETERS, STATUSES
from tests.integration.doors import HEADER_LENGTH, INFER
from tests.integration.server_process import start_server

PAGE = (ROOT / "docs" / "protocol.md").read_text()
CODE = re.compile(r"`([^`]+)`")
CAUSES = read_table(PAGE, "what went wrong")
CHECKED: dict[str, tuple[list[list[str]], Any]] = {
    "status": (CAUSES, STATUSES),
    "parameter": (read_table(PAGE, "parameter of a request"), PARAMETERS),
    "difference": (read_table(PAGE, "", "Triton"), DIFFERENCES),
}
ROWS = [
    pytest.param(row, checks, id="-".join([name, *re.findall(r"\w+", row[0])[:6]]))
    for name, (rows, checks) in CHECKED.items()
    for row in rows
]


def list_routes() -> Iterator[tuple[str, str, str, set[str]]]:
    """Path, method, key and other statuses of each route of the page."""
    for cell, methods, key, _, statuses in read_table(PAGE, "path", "method"):
        paths = [path for text in CODE.findall(cell) for path in expand(text)]
        for path in dict.fromkeys(paths):
            for method in methods.split(", "):
                yield path, method, key, set(statuses.split(", ")) - {"none"}


def expand(path: str) -> list[str]:
    """A path with and without its part in brackets."""
    return [re.sub(r"\[.*?\]", "", path), re.sub(r"[\[\]]", "", path)]


def test_every_route_of_the_application_is_documented_and_no_other() -> None:
    # What is mounted, files below a path, has no methods of its own.
    served = [
        (route.path, method)
        for route in iter_route_contexts(create_app(Settings()).routes)
        for method in route.methods or {"GET"}
    ]
    assert sorted((path, method) for path, method, *_ in list_routes()) == sorted(served)


def read_statuses(settings: Settings) -> dict[tuple[str, str], set[str]]:
    """The statuses of OpenAPI other than 200, by path and method."""
    paths = create_app(settings).openapi()["paths"]
    return {
        (path, method.upper()): set(operation["responses"]) - {"200"}
        for path, operations in paths.items()
        for method, operation in operations.items()
    }


@pytest.fixture
def keys_file(tmp_path: Path) -> Path:
    """A file of one key."""
    file = tmp_path / "keys"
    file.write_text(f"infer:{'5e' * 32}")
    return file


def test_the_statuses_of_a_route_are_those_of_openapi(keys_file: Path) -> None:
    without, given = read_statuses(Settings()), read_statuses(Settings(api_keys_file=keys_file))
    rows = {(path, method): (key, others) for path, method, key, others in list_routes()}
    assert without.keys() <= rows.keys()
    refusals = {"none": set[str](), "infer": {"401"}, "admin": {"401", "403"}}
    for route in without:
        key, others = rows[route]
        assert without[route] == others | ({"403"} if route[1] == "POST" else set()), route
        assert given[route] == others | refusals[key], route


def test_the_keys_of_routes_are_those_that_are_asked_for() -> None:
    folders = {"/page", "/docs/assets"}
    for path, method, key, _ in list_routes():
        need = Access().find_need(method, f"{path}/file.js" if path in folders else path)
        assert key == need.replace("nothing", "none"), (method, path)


@pytest.mark.parametrize(("row", "checks"), ROWS)
def test_a_row_is_checked_here_or_names_the_tests_that_do(row: list[str], checks: Any) -> None:
    references = find_tests(" ".join(row))
    assert (strip_comments(row[0]) in checks) != bool(references)
    assert all(map(is_test, references)), references


@pytest.mark.parametrize("name", CHECKED)
def test_every_check_belongs_to_a_row(name: str) -> None:
    rows, checks = CHECKED[name]
    assert checks.keys() <= {row[0] for row in rows}


@pytest.mark.parametrize("cause", STATUSES)
def test_a_cause_has_its_status(client: httpx.Client, cause: str) -> None:
    (cell,) = [row[1] for row in CAUSES if row[0] == cause]
    for response in STATUSES[cause](client):
        assert response.status_code == int(cell[:3]), response.text
        assert response.headers["content-type"] == "application/json"
        assert response.json().keys() == {"error"}
        assert response.json()["error"]
        assert HEADER_LENGTH not in response.headers
        assert all(header in response.headers for header in CODE.findall(cell))


@pytest.mark.parametrize("row", PARAMETERS)
def test_a_parameter_is_as_the_page_says(client: httpx.Client, row: str) -> None:
    PARAMETERS[row](client)


@pytest.mark.parametrize("row", DIFFERENCES)
def test_a_difference_is_as_the_page_says(client: httpx.Client, row: str) -> None:
    DIFFERENCES[row](client)


def test_the_datatypes_and_their_sizes_are_those_that_are_read() -> None:
    rows = read_table(PAGE, "datatype")
    sizes = {name: int(row[1]) for row in rows for name in CODE.findall(row[0])}
    assert sizes == {name: dtype.itemsize for name, dtype in DTYPES.items()}


def test_the_outputs_of_each_form_of_the_weights_are_those_that_are_answered() -> None:
    rows = read_table(PAGE, "`weights`", "outputs")
    listed = {form: tuple(CODE.findall(row[1])) for row in rows for form in CODE.findall(row[0])}
    assert listed == {f'"{form}"': names for form, names in OUTPUTS.items()}


def test_the_extensions_are_those_that_the_server_names(client: httpx.Client) -> None:
    (paragraph,) = re.findall(r"^`extensions` holds.*?\n\n", PAGE, re.MULTILINE | re.DOTALL)
    *always, last = CODE.findall(paragraph)[1:]
    assert sorted(client.get("/v2").json()["extensions"]) == sorted(always)
    assert last == "model_repository"


def list_metrics(text: str) -> dict[str, set[str]]:
    """Metrics by name, each with the names of its labels.

    Parsers do not have the names: prometheus_client's adds `_total` to those of counters.
    """
    histograms = re.findall(r"^# TYPE (\w+) histogram$", text, re.MULTILINE)
    metrics: dict[str, set[str]] = {}
    for sample, labels in re.findall(r"^(\w+)(?:\{(.*)\})? ", text, re.MULTILINE):
        name = re.sub(r"_(bucket|sum|count|created)$", "", sample)
        name = name if name in histograms else sample
        metrics.setdefault(name, set()).update(set(re.findall(r'(\w+)="', labels)) - {"le"})
    return metrics


def test_the_metrics_and_their_labels_are_those_that_are_served(client: httpx.Client) -> None:
    assert client.post(INFER, json=BODY).status_code == 200
    served = list_metrics(client.get("/metrics").text)
    for name in [name for name in served if name.endswith("_created")]:
        assert served.pop(name) == served[name.replace("_created", "_total")]
    rows = read_table(PAGE, "metric")
    assert served == {CODE.findall(row[0])[0]: set(CODE.findall(row[1])) for row in rows}


def test_the_fields_of_a_config_are_honoured_or_named_as_the_page_says() -> None:
    rows = read_table(PAGE, "field")
    fields = [field for row in rows for field in CODE.findall(row[0])]
    text = (
        'name: "m" platform: "onnxruntime_onnx" backend: "onnxruntime" max_batch_size: 5 '
        'default_model_filename: "model.onnx" input {} output {} instance_group { count: 2 } '
        "dynamic_batching { max_queue_delay_microseconds: 7 }"
    )
    assert all(re.search(rf"\b{field.split('.')[-1]}\b", text) for field in fields), fields
    honoured = parse_model_config(text.encode(), "m")
    assert honoured == ModelConfig(max_batch_size=5, max_queue_delay_us=7, instance_count=2)
    others = parse_model_config(b"version_policy {} instance_group { kind: KIND_CPU }", "m")
    assert others.ignored == ("version_policy", "instance_group.kind")


def test_the_kinds_of_control_are_those_of_the_setting() -> None:
    kinds = [CODE.findall(row[0])[0] for row in read_table(PAGE, "control")]
    assert kinds == list(get_args(Settings.model_fields["model_control"].annotation))


def test_every_test_that_a_comment_names_is_there() -> None:
    references = find_tests(PAGE)
    assert len(references) == PAGE.count(".py::")
    assert [reference for reference in references if not is_test(reference)] == []


def test_settings_that_the_page_names_exist() -> None:
    named = set(re.findall(rf"\b{PREFIX}[A-Z_]+\b", PAGE))
    assert named <= {PREFIX + name.upper() for name in Settings.model_fields}


def test_links_lead_to_pages_that_are_there() -> None:
    targets = re.findall(r"\]\((?!https:)([^)]+)\)", PAGE)
    assert set(targets) == {"contract.md", "settings.md"}
    assert all((ROOT / "docs" / target).is_file() for target in targets)


def test_a_server_of_explicit_control_answers_as_the_page_says() -> None:
    (shown,) = read_blocks(read_section(PAGE, "Models that come and go"), "json")
    with (
        start_server(LIMELIGHT_MODEL_CONTROL="explicit") as server,
        httpx.Client(base_url=f"{server.url}/v2") as client,
    ):
        assert client.post("/repository/index").json() == json.loads(shown)
        for verb in ("load", "unload", "load"):
            response = client.post(f"/repository/models/demo/{verb}")
            assert (response.status_code, response.json()) == (200, {})
            assert client.post(f"/repository/models/other/{verb}").status_code == 404
        config = {"parameters": {"config": "{}"}}
        assert client.post("/repository/models/demo/load", json=config).status_code == 501
        assert "model_repository" in client.get("").json()["extensions"]
