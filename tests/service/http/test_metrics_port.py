"""The port that serves the metrics alone."""

from typing import Any

import httpx
import pytest
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from service.http.metrics_port import MetricsPort
from tests.service.http.live_server import ask as write_request
from tests.service.http.live_server import read_answer, serve
from tests.service.http.prompter import Prompter

PORT, OTHER_PORT = 9102, 9103


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    """Says what it was asked."""
    asked = f"{scope['method']} {scope['path']}"
    await Response(headers={"Asked": asked})(scope, receive, send)


async def ask(method: str, path: str, port: int, **others: Any) -> httpx.Response:
    """The answer of the application behind a port."""
    transport = httpx.ASGITransport(MetricsPort(app, PORT, Prompter()))
    async with httpx.AsyncClient(transport=transport) as client:
        return await client.request(method, f"http://127.0.0.1:{port}{path}", **others)


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST"])
async def test_the_metrics_are_the_applications_matter(method: str) -> None:
    for port in (PORT, OTHER_PORT):
        answer = await ask(method, "/metrics?name=x", port)
        assert (answer.status_code, answer.headers["Asked"]) == (200, f"{method} /metrics")


@pytest.mark.parametrize("path", ["/", "/v2", "/v2/models/demo/infer", "/metrics/", "/metrics/x"])
async def test_nothing_else_is_served(path: str) -> None:
    answer = await ask("POST", path, PORT, headers={"X-Request-Id": "mine"})
    assert answer.status_code == 404
    text = f"nothing is served at {path}, this port serves /metrics alone"
    assert answer.json() == {"error": text}
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.headers["X-Request-Id"] == "mine"


async def test_the_other_port_serves_everything() -> None:
    answer = await ask("GET", "/v2", OTHER_PORT)
    assert (answer.status_code, answer.headers["Asked"]) == (200, "GET /v2")


async def test_a_client_cannot_choose_the_port_by_a_header() -> None:
    answer = await ask("GET", "/v2", PORT, headers={"Host": f"127.0.0.1:{OTHER_PORT}"})
    assert answer.status_code == 404


async def test_the_life_of_the_application_is_not_touched() -> None:
    seen: list[Scope] = []

    async def live(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(scope)

    async def never(_: Any = None) -> Any:
        raise AssertionError

    await MetricsPort(live, PORT, Prompter())({"type": "lifespan"}, never, never)
    assert seen == [{"type": "lifespan"}]


@pytest.mark.parametrize("port", [PORT, OTHER_PORT])
def test_nothing_is_answered_at_once_on_the_port_of_the_metrics(port: int) -> None:
    both = MetricsPort(app, PORT, Prompter())
    assert both.is_for({"path": "/", "server": ("127.0.0.1", port)}, 1) is (port == OTHER_PORT)
    assert not both.is_for({"path": "/other", "server": ("127.0.0.1", port)}, 1)


def test_on_the_other_port_a_request_is_answered_at_once() -> None:
    prompter = Prompter()
    both = MetricsPort(app, PORT, prompter)
    with serve(both, answerer=both) as server, server.connect() as client:
        client.sendall(write_request("/", b"12345"))
        status, headers, text = read_answer(client)
    assert (status, headers["answered"], text) == (200, "at once", b"5")
    assert prompter.asked == [(b"12345", True)]
    assert not both.waiting
