"""Settings of trace and log: what they are, and that writing them is refused or changes nothing."""

import json
import os
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.integration.doors import JSON
from tests.integration.server_process import start_server

TRACES = ("/v2/trace/setting", "/v2/models/demo/trace/setting")
LOG = "/v2/logging"
EACH_TRACE = pytest.mark.parametrize("path", TRACES)
EACH = pytest.mark.parametrize("path", [*TRACES, LOG])
CONTENT_TYPES = [None, "application/json", "application/octet-stream",
                 "application/x-www-form-urlencoded"]  # fmt: skip


def post(
    client: httpx.Client, path: str, body: bytes | dict[str, Any], media_type: str | None = None
) -> httpx.Response:
    """Write settings, in the words of one client or another."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = {} if media_type is None else {"Content-Type": media_type}
    response = client.post(path, content=content, headers=headers)
    assert response.headers["Content-Type"] == JSON
    return response


def read(client: httpx.Client, path: str) -> Any:
    """The settings."""
    response = client.get(path)
    assert response.status_code == 200
    assert response.headers["Content-Type"] == JSON
    return response.json()


@EACH_TRACE
def test_nothing_is_traced(client: httpx.Client, path: str) -> None:
    settings = read(client, path)
    assert settings.pop("trace_level") == ["OFF"]
    assert all(isinstance(value, str) for value in settings.values())
    assert settings["trace_count"] == "-1"
    assert sorted(settings) == [
        "log_frequency", "trace_count", "trace_file", "trace_mode", "trace_rate",
    ]  # fmt: skip


@EACH
@pytest.mark.parametrize("media_type", CONTENT_TYPES, ids=str)
def test_what_is_so_can_be_written_whatever_the_content_type(
    client: httpx.Client, path: str, media_type: str | None
) -> None:
    settings = read(client, path)
    nothing: dict[str, Any] = dict.fromkeys(settings)
    for body in (settings, {}, nothing, b""):
        response = post(client, path, body, media_type)
        assert (response.status_code, response.json()) == (200, settings)


@EACH_TRACE
def test_a_trace_is_not_offered_and_the_settings_stay(client: httpx.Client, path: str) -> None:
    """perf_analyzer writes them twice before it begins."""
    settings = read(client, path)
    wish = {"trace_level": ["TIMESTAMPS"], "trace_rate": "1"}
    for _ in range(2):
        response = post(client, path, wish, "application/x-www-form-urlencoded")
        text = (
            'setting \'trace_level\' is ["OFF"], and cannot become ["TIMESTAMPS"] while '
            "the server runs: "
            "tracing is not offered; the header Server-Timing and /metrics say where the time goes"
        )
        assert (response.status_code, response.json()) == (501, {"error": text})
    assert read(client, path) == settings


@EACH
@pytest.mark.parametrize("body", [b"{", b"[]", b"null", b"\xff", b'{"none": 1}', b'{"none": null}'])
def test_a_malformed_body_is_400(client: httpx.Client, path: str, body: bytes) -> None:
    response = post(client, path, body)
    assert response.status_code == 400
    assert list(response.json()) == ["error"]


@EACH
def test_a_value_of_another_kind_is_400(client: httpx.Client, path: str) -> None:
    for name in read(client, path):
        response = post(client, path, {name: {}})
        assert response.status_code == 400
        assert response.json()["error"].startswith(f"setting '{name}' is an object, expected ")


@EACH
@pytest.mark.parametrize("method", ["PUT", "DELETE"])
def test_another_method_is_405(client: httpx.Client, path: str, method: str) -> None:
    response = client.request(method, path)
    assert response.status_code == 405
    assert response.json() == {"error": f"{method} is not served at {path}"}
    assert response.headers["Allow"] == "GET, POST"


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_model_that_is_not_served_is_404(client: httpx.Client, method: str) -> None:
    response = client.request(method, "/v2/models/other/trace/setting")
    text = "model 'other' is not served here; served: demo"
    assert (response.status_code, response.json()) == (404, {"error": text})


@pytest.fixture(scope="module", params=["debug", "error"], name="logging_at")
def serve_at_a_level(request: pytest.FixtureRequest) -> Iterator[tuple[str, httpx.Client]]:
    """A level of the log, and a client of a server that has it."""
    if "LIMELIGHT_TEST_URL" in os.environ:
        pytest.skip("a deployed server is tested")
    with (
        start_server(LIMELIGHT_LOG_LEVEL=request.param) as server,
        httpx.Client(base_url=server.url) as client,
    ):
        yield request.param, client


def test_the_settings_of_the_log_are_those_of_its_level(
    logging_at: tuple[str, httpx.Client],
) -> None:
    level, client = logging_at
    is_all = level == "debug"
    assert read(client, LOG) == {
        "log_file": "",
        "log_info": is_all,
        "log_warning": is_all,
        "log_error": True,
        "log_verbose_level": int(is_all),
        "log_format": "default",
    }
    response = post(client, LOG, {"log_info": not is_all})
    now, wish = json.dumps(is_all), json.dumps(not is_all)
    text = (
        f"setting 'log_info' is {now}, and cannot become {wish} while the server runs: set "
        "LIMELIGHT_LOG_LEVEL to debug, info, warning or error, and restart"
    )
    assert (response.status_code, response.json()) == (501, {"error": text})
