"""The one form of every error, whatever its source."""

import socket
from collections.abc import Mapping
from urllib.parse import urlsplit

import httpx
import pytest

from tests.integration.demo import D
from tests.integration.doors import ATTENTION, HEADER_LENGTH, INFER, JSON

TIMEOUT_S = 30


def check_error(response: httpx.Response, status: int) -> str:
    """The text of an error that has the protocol's form."""
    assert response.status_code == status, response.text
    assert response.headers["Content-Type"] == JSON
    assert HEADER_LENGTH not in response.headers
    body = response.json()
    assert list(body) == ["error"]
    assert isinstance(body["error"], str)
    assert body["error"]
    return str(body["error"])


@pytest.mark.parametrize(
    "path",
    [
        "/v3",
        "/v2/model",
        "/v2/models/demo/versions",
        "/v2/models/demo/infer/more",
        "/v1",
        "/page/none.js",
        "/docs/assets/none.js",
        "/docs/assets/../../../etc/passwd",
        "/%00",
        "/favicon.ico/x",
    ],
)
def test_an_unknown_path_is_404(client: httpx.Client, path: str) -> None:
    assert check_error(client.get(path), 404)


def test_the_text_of_an_unknown_path_names_it(client: httpx.Client) -> None:
    assert check_error(client.get("/v3/x?y=1"), 404) == "nothing is served at /v3/x"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", INFER),
        ("GET", ATTENTION),
        ("PUT", ATTENTION),
        ("DELETE", "/v2/models/demo"),
        ("POST", "/v2/health/live"),
        ("POST", "/v2"),
        ("PATCH", "/metrics"),
    ],
)
def test_a_method_that_is_not_served_is_405(client: httpx.Client, method: str, path: str) -> None:
    response = client.request(method, path)
    assert check_error(response, 405) == f"{method} is not served at {path}"
    assert response.headers["Allow"]


@pytest.mark.parametrize("path", [INFER, ATTENTION])
@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b'{"inputs": 1}', b"\xff"])
def test_a_malformed_body_is_400(client: httpx.Client, path: str, body: bytes) -> None:
    check_error(client.post(path, content=body), 400)


def test_an_error_does_not_spoil_its_connection(
    server_url: str, auth_headers: Mapping[str, str]
) -> None:
    limits = httpx.Limits(max_connections=1, max_keepalive_connections=1)
    with httpx.Client(base_url=server_url, headers=auth_headers, limits=limits) as client:
        for _ in range(3):
            check_error(client.post(INFER, content=b"{" * 100_000), 400)
            check_error(client.get("/nothing"), 404)
            body = {"query": [[0.5] * D]}
            assert client.post(ATTENTION, json=body).status_code == 200


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(b"NONSENSE\r\n\r\n", id="no-request-line"),
        pytest.param(b"BREW /v2 HTTP/1.1\r\nHost: x\r\n\r\n", id="unknown-method"),
        pytest.param(b"GET /v2 HTTP/1.1\r\nno colon\r\n\r\n", id="broken-header"),
        pytest.param(
            b"POST /v1/attention HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n", id="length"
        ),
        pytest.param(b"GET /v2 HTTP/1.1\r\n\r\n", id="no-host"),
        pytest.param(b"GET /v2 HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n", id="two-hosts"),
    ],
)
def test_what_is_not_http_is_400_in_the_same_form(server_url: str, text: bytes) -> None:
    address = urlsplit(server_url)
    with socket.create_connection((address.hostname, address.port), TIMEOUT_S) as connection:
        connection.sendall(text)
        answer = b""
        while part := connection.recv(65536):
            answer += part
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b" 400 " in head.splitlines()[0]
    assert b"application/json" in head
    assert b'{"error":' in body
