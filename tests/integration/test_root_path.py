"""A server under a prefix, behind a proxy that strips it and behind one that passes it on."""

import json
import os
import re
import shlex
import subprocess
from collections.abc import Iterator

import httpx
import pytest

from tests.integration.demo import check_close, draw_tokens, expect
from tests.integration.doors import DOORS, JSON, ask
from tests.integration.server_process import STOP_TIMEOUT_S, ServerProcess, start_server
from tests.integration.stripping_proxy import start_proxy

pytestmark = pytest.mark.skipif(
    "LIMELIGHT_TEST_URL" in os.environ, reason="a deployed server is tested"
)
PREFIX = "/attn/v1"  # ends as a path of the server begins
TIMEOUT_S = 60
GETS = [
    "/v2",
    "/v2/",
    "/v2/health/live",
    "/v2/health/ready",
    "/v2/models",
    "/v2/models/demo",
    "/v2/models/demo/config",
    "/v2/models/demo/ready",
    "/v2/trace/setting",
    "/metrics",
    "/openapi.json",
    "/docs",
    "/",
]


@pytest.fixture(scope="module", name="server")
def serve_under_a_prefix() -> Iterator[ServerProcess]:
    """A server that is told its prefix."""
    with start_server("--root-path", PREFIX) as server:
        yield server


@pytest.fixture(scope="module", params=["passed-on", "stripped"], name="client")
def connect(request: pytest.FixtureRequest, server: ServerProcess) -> Iterator[httpx.Client]:
    """A client of the prefix."""
    if request.param == "passed-on":
        with httpx.Client(base_url=server.url, timeout=TIMEOUT_S) as client:
            yield client
        return
    with (
        start_proxy(server.url.removesuffix(PREFIX), PREFIX) as url,
        httpx.Client(base_url=url, timeout=TIMEOUT_S) as client,
    ):
        yield client


def test_the_first_screen_says_addresses_with_the_prefix(server: ServerProcess) -> None:
    assert server.url.endswith(PREFIX)
    (docs,) = [line.split()[1] for line in server.banner if line.startswith("  docs ")]
    assert docs == f"{server.url}/docs"
    assert httpx.get(docs).status_code == 200
    line = server.banner[-1].removeprefix("  try ").strip()
    done = subprocess.run(
        shlex.split(line), check=True, capture_output=True, timeout=STOP_TIMEOUT_S
    )
    assert json.loads(done.stdout)["model_name"] == "demo"


@pytest.mark.parametrize("path", GETS)
def test_every_page_is_served(client: httpx.Client, path: str) -> None:
    assert client.get(path).status_code == 200


@pytest.mark.parametrize("door", DOORS)
def test_every_door_answers(server: ServerProcess, door: str) -> None:
    tensors = draw_tokens()
    with httpx.Client(base_url=server.url.removesuffix(PREFIX), timeout=TIMEOUT_S) as client:
        check_close(ask(client, door, tensors), expect(tensors))


@pytest.mark.parametrize("path", ["/v1/attention", "/v2/models/demo/infer"])
def test_inference_is_served(client: httpx.Client, path: str) -> None:
    query = [[[1, 0, 0, 0, 0, 0]]]
    entry = {"name": "query", "shape": [1, 1, 6], "datatype": "FP32", "data": query}
    body = {"query": query} if "v1" in path else {"inputs": [entry]}
    assert client.post(path, json=body).json()["model_name"] == "demo"


@pytest.mark.parametrize("path", ["/", "/docs"])
def test_everything_that_a_page_loads_and_leads_to_is_there(
    client: httpx.Client, path: str
) -> None:
    page = client.get(path)
    links = re.findall(r"""(?:src|href|url)\s*[=:]\s*["']([^"'#]+)["']""", page.text)
    assert links
    for link in links:
        address = page.url.join(link)
        assert address.path.startswith(PREFIX), link
        assert client.get(address).status_code == 200, link


def test_the_prefix_alone_leads_to_the_page(server: ServerProcess) -> None:
    answer = httpx.get(server.url, follow_redirects=True)
    assert answer.url.path == f"{PREFIX}/"
    assert "Limelight" in answer.text


def test_the_description_of_the_api_has_the_prefix(client: httpx.Client) -> None:
    assert client.get("/openapi.json").json()["servers"] == [{"url": PREFIX}]


@pytest.mark.parametrize(
    ("method", "path", "status", "text"),
    [
        ("GET", "/v3", 404, f"nothing is served at {PREFIX}/v3"),
        ("GET", "/page/none.js", 404, f"nothing is served at {PREFIX}/page/none.js"),
        ("PUT", "/v2", 405, f"PUT is not served at {PREFIX}/v2"),
        ("GET", "/v2/models/other", 404, "model 'other' is not served here; served: demo"),
    ],
)
def test_errors_name_the_path_that_the_client_asked_for(
    server: ServerProcess, method: str, path: str, status: int, text: str
) -> None:
    for prefix in (PREFIX, ""):
        answer = httpx.request(method, f"{server.url.removesuffix(PREFIX)}{prefix}{path}")
        assert (answer.status_code, answer.json()) == (status, {"error": text})
        assert answer.headers["Content-Type"] == JSON


@pytest.mark.clients
def test_tritonclient_takes_a_base_path(client: httpx.Client) -> None:
    import tritonclient.http

    triton = tritonclient.http.InferenceServerClient(str(client.base_url).partition("://")[2])
    assert triton.is_server_ready()
    assert triton.get_model_config("demo")["name"] == "demo"
    query = draw_tokens()["query"]
    given = tritonclient.http.InferInput("query", list(query.shape), "FP32")
    given.set_data_from_numpy(query)
    result = triton.infer("demo", [given])
    outputs = {name: result.as_numpy(name) for name in ("output", "attention_weights")}
    check_close(outputs, expect({"query": query}))
    triton.close()
