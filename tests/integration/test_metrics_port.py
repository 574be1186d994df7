"""The metrics on a port of their own, LIMELIGHT_METRICS_PORT."""

import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

import httpx
import pytest

from tests.integration.demo import draw_tokens
from tests.integration.doors import DOORS
from tests.integration.server_process import find_free_port, run_command, start_server

pytestmark = pytest.mark.skipif(
    "LIMELIGHT_TEST_URL" in os.environ, reason="a deployed server has settings of its own"
)
MAX_HEAD_BYTES: Final = 65536


@dataclass(frozen=True)
class Pair:
    """Both ports of a server."""

    main: httpx.Client
    metrics: httpx.Client


@pytest.fixture(name="pair", scope="module")
def start_pair() -> Iterator[Pair]:
    """A server whose metrics have a port of their own."""
    port = find_free_port()
    with (
        start_server(LIMELIGHT_METRICS_PORT=str(port)) as server,
        httpx.Client(base_url=server.url) as main,
        httpx.Client(base_url=f"http://127.0.0.1:{port}") as metrics,
    ):
        yield Pair(main, metrics)


def test_both_ports_publish_the_same(pair: Pair) -> None:
    assert DOORS["v2-json"](pair.main, draw_tokens()).status_code == 200
    texts = [client.get("/metrics").text for client in (pair.metrics, pair.main)]
    assert texts[0] == texts[1]
    assert 'nv_inference_request_success{model="demo",version="1"} 1' in texts[0]
    assert pair.metrics.head("/metrics").status_code == 200
    assert pair.metrics.get("/metrics").headers["X-Request-Id"]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/"),
        ("GET", "/v2/health/live"),
        ("GET", "/docs"),
        ("GET", "/metrics/"),
        ("POST", "/v2/models/demo/infer"),
        ("POST", "/v1/attention"),
    ],
)
def test_the_port_of_the_metrics_serves_nothing_else(pair: Pair, method: str, path: str) -> None:
    text = f"nothing is served at {path}, this port serves /metrics alone"
    answer = pair.metrics.request(
        method, path, headers={"Host": pair.main.base_url.netloc.decode()}
    )
    assert (answer.status_code, answer.json()) == (404, {"error": text})
    assert pair.main.request(method, path).status_code != 404 or path == "/metrics/"


def test_another_method_is_405_at_both_ports(pair: Pair) -> None:
    for client in (pair.metrics, pair.main):
        answer = client.post("/metrics", content=b"{}")
        text = "POST is not served at /metrics"
        assert (answer.status_code, answer.json()) == (405, {"error": text})


def test_the_port_of_the_metrics_is_bounded_like_the_other(pair: Pair) -> None:
    url = pair.metrics.base_url
    # One byte beyond the bound and no more, so that the answer is not overtaken by a reset.
    head = (b"GET /" + b"x" * MAX_HEAD_BYTES)[: MAX_HEAD_BYTES + 1]
    with socket.create_connection((url.host, url.port), 30) as connection:
        connection.sendall(head)
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b'{"error":"the request line and headers are larger than 65536 bytes, ' in answer


def test_both_ports_close_when_the_server_stops() -> None:
    port = find_free_port()
    with start_server("--metrics-port", str(port)) as server:
        ports = (port, urlsplit(server.url).port)
        for each in ports:
            socket.create_connection(("127.0.0.1", each), 10).close()
        # A connection that idles at the port of the metrics does not hold the server up.
        with httpx.Client() as idle:
            assert idle.get(f"http://127.0.0.1:{port}/metrics").status_code == 200
            assert server.stop() == 0
    for each in ports:
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", each), 10)


@pytest.mark.parametrize("name", ["LIMELIGHT_PORT", "LIMELIGHT_METRICS_PORT"])
def test_a_port_that_is_taken_is_named_by_its_setting(name: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        settings: dict[str, Any] = {"LIMELIGHT_PORT": "0", name: str(port)}
        done = run_command(timeout_s=10, **settings)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"limelight-serve: cannot listen on 127.0.0.1 port {port}: Address already in use; "
        f"choose another with LIMELIGHT_HOST and {name}\n"
    )
