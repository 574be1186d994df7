"""Faults of keys: a route, a method, a path or a header that nobody thought of opens the server.

Triton CVE-2026-24206, -24207, -47481; Lightning-AI/LitServe #674; Ray CVE-2023-48022, -2026-27482;
Starlette CVE-2026-48710; TorchServe CVE-2024-35199.
"""

import hashlib
import http.client
import json
import os
import re
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import httpx
import pytest

from service.app import create_app
from service.settings import PREFIX, Settings
from tests.integration.demo import check_close, draw_tokens, expect
from tests.integration.doors import ATTENTION, DOORS, INFER, ask
from tests.integration.server_process import ServerProcess, start_server

pytestmark = pytest.mark.skipif(
    "LIMELIGHT_TEST_URL" in os.environ, reason="a deployed server is tested"
)
TIMEOUT_S: Final = 30
INFER_KEY, ADMIN_KEY = "infer-key-of-the-tests", "admin-key-of-the-tests"
Headers = Sequence[tuple[str, str]]


def write_line(role: str, key: str) -> str:
    """A line of a file of keys, as `sha256sum` would make it."""
    return f"{role}:{hashlib.sha256(key.encode()).hexdigest()}\n"


def bear(key: str) -> Headers:
    """The header of a key."""
    return [("Authorization", f"Bearer {key}")]


METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")
STRANGERS: Final[dict[str, Headers]] = {
    "none": [],
    "wrong": bear("wrong-key-of-the-tests"),
    "empty": bear(""),
    "empty-header": [("Authorization", "")],
    "long": bear("x" * 10_000),
    "basic": [("Authorization", f"Basic {ADMIN_KEY}")],
    "twice": [*bear(ADMIN_KEY), *bear(ADMIN_KEY)],
    "in-another-header": [("X-Api-Key", ADMIN_KEY), ("Cookie", f"key={ADMIN_KEY}")],
    "its-hash": bear(hashlib.sha256(ADMIN_KEY.encode()).hexdigest()),
}
# What the design opens, and what infer may do beside reading: written here once more on purpose.
OPEN: Final = {"/v2/health/live", "/v2/health/ready", "/", "/docs", "/docs/start.js"}
OPEN_FOLDERS: Final = ("/page/", "/docs/assets/")
INFER_POSTS: Final = {
    "/v1/attention",
    "/v2/models/absent/infer",
    "/v2/models/absent/versions/1/infer",
    "/v2/repository/index",
}


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of two keys."""
    file = tmp_path_factory.mktemp("keys") / "keys"
    file.write_text(write_line("infer", INFER_KEY) + write_line("admin", ADMIN_KEY))
    return file


@pytest.fixture(scope="module")
def server(file: Path) -> Iterator[ServerProcess]:
    """A server that wants keys."""
    with start_server(LIMELIGHT_API_KEYS_FILE=str(file)) as started:
        yield started


def send(server: ServerProcess, method: str, target: str, headers: Headers) -> tuple[int, Any]:
    """Status and body of an answer; the target is sent as it stands, on a connection of its own."""
    address = urlsplit(server.url)
    connection = http.client.HTTPConnection(address.netloc, timeout=TIMEOUT_S)
    try:
        connection.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
        if not any(name == "Host" for name, _ in headers):
            connection.putheader("Host", address.netloc)
        for name, value in headers:
            connection.putheader(name, value)
        connection.endheaders()
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def list_routes(routes: Sequence[Any]) -> Iterator[str]:
    """The paths of all routes, those of included routers too."""
    for route in routes:
        if hasattr(route, "original_router"):
            yield from list_routes(route.original_router.routes)
        else:
            yield route.path


@pytest.fixture(scope="module")
def paths() -> list[str]:
    """A path for every route of the application."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith(PREFIX)]:
            patch.delenv(name)
        found = sorted(set(list_routes(create_app(Settings.load()).routes)))
    paths = []
    for path in found:
        if path in ("/page", "/docs/assets"):  # a folder of files
            paths += [path, f"{path}/", f"{path}/absent.js"]
        else:
            paths.append(re.sub(r"\{\w+\}", "absent", path.replace("{version}", "1")))
    return [*paths, "/nothing"]


def is_open(method: str, path: str) -> bool:
    """Whether a request needs no key."""
    in_folder = path.startswith(OPEN_FOLDERS) and not path.endswith("/")
    return method in ("GET", "HEAD") and (path in OPEN or in_folder)


def test_the_walk_finds_the_routes(paths: list[str]) -> None:
    assert len(paths) > 20
    assert {*OPEN, *INFER_POSTS} - {"/v2/repository/index"} <= set(paths)
    assert {"/metrics", "/openapi.json", "/v2/models"} <= set(paths)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("headers", STRANGERS.values(), ids=STRANGERS)
def test_without_a_key_the_list_opens_and_nothing_else(
    server: ServerProcess, paths: list[str], method: str, headers: Headers
) -> None:
    texts = set()
    for path in paths:
        status, body = send(server, method, path, headers)
        if is_open(method, path):
            assert status in (200, 404, 405), path
        else:
            assert status == 401, path
            texts.add(body)
    # One text for all paths: it does not tell which of them are served.
    assert len(texts) == 1
    if method != "HEAD":
        assert list(json.loads(texts.pop())) == ["error"]


@pytest.mark.parametrize("method", METHODS)
def test_an_infer_key_opens_what_reads_and_infers(
    server: ServerProcess, paths: list[str], method: str
) -> None:
    for path in paths:
        status, _ = send(server, method, path, bear(INFER_KEY))
        reads = method in ("GET", "HEAD", "OPTIONS")
        if reads or (method == "POST" and path in INFER_POSTS):
            assert status not in (401, 403), path
        else:
            assert status == 403, path


@pytest.mark.parametrize("method", METHODS)
def test_an_admin_key_opens_everything(
    server: ServerProcess, paths: list[str], method: str
) -> None:
    for path in paths:
        status, _ = send(server, method, path, bear(ADMIN_KEY))
        assert status not in (401, 403), path


# Each looks like an open path to some reader: a proxy, a file system, or a person.
LOOKALIKES: Final = [
    "//v2/models", "//v2/health/live", "/v2/health/live/", "/V2/HEALTH/LIVE", "/v2/health/live;x",
    "/v2/health/live%00", "/v2/health/live%0a", "/v2/health/live%3f", "/v2/health/../models",
    "/v2/health/%2e%2e/models", "/v2/health/live/../../models", "/v2/health/live/%2e%2e/ready",
    "/page/../metrics", "/page/%2e%2e/metrics", "/page/..%2fmetrics", "/page/..%5cmetrics",
    "/page/%2e%2e%2fv2/models", "/page/./../v2/models", "/docs/assets/../../metrics",
    "/docs/assets/%2e%2e/%2e%2e/v2/models", "/page//etc/passwd", "/metrics", "/metrics?/docs",
    "/metrics%3f/docs", "/v2/models?path=/v2/health/live", "/docs/../openapi.json", "/docs/",
    "/openapi.json", "/%2fv2/models", "http://other/v2/models", "http://v2/health/live/../models",
]  # fmt: skip


@pytest.mark.parametrize("target", LOOKALIKES)
def test_a_path_that_looks_open_is_not(server: ServerProcess, target: str) -> None:
    status, _ = send(server, "GET", target, [])
    assert status == 401


@pytest.mark.parametrize(
    "host",
    ["", "x", "/v2/health/live", "x/v2/health/live?", "x/docs#", "127.0.0.1/v2/health/live?x="],
)
@pytest.mark.parametrize("name", ["Host", "X-Forwarded-Host", "X-Forwarded-Prefix", "Forwarded"])
def test_no_host_opens_a_path(server: ServerProcess, name: str, host: str) -> None:
    assert send(server, "GET", "/v2/models", [(name, host)])[0] == 401


@pytest.mark.parametrize("name", ["X-Original-URL", "X-Rewrite-URL", "X-HTTP-Method-Override"])
def test_no_header_of_a_proxy_moves_a_request(server: ServerProcess, name: str) -> None:
    for value in ("/v2/health/live", "GET"):
        assert send(server, "POST", "/v2/logging", [(name, value)])[0] == 401
        headers = [(name, value), *bear(INFER_KEY)]
        assert send(server, "POST", "/v2/logging", headers)[0] == 403


def test_a_websocket_is_not_opened(server: ServerProcess) -> None:
    headers = [
        ("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13"),
        ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ]  # fmt: skip
    assert send(server, "GET", "/v2/models", headers)[0] == 401


@pytest.mark.parametrize("key", [INFER_KEY, ADMIN_KEY])
@pytest.mark.parametrize("door", DOORS)
def test_both_roles_infer_at_every_door(server: ServerProcess, key: str, door: str) -> None:
    tensors = draw_tokens()
    with httpx.Client(base_url=server.url, headers=dict(bear(key))) as client:
        check_close(ask(client, door, tensors), expect(tensors))


def test_a_refused_body_is_not_read_and_the_next_request_is(server: ServerProcess) -> None:
    """A client must be able to read why, and a connection must not go out of step."""
    with httpx.Client(base_url=server.url) as client:
        for path in (ATTENTION, INFER):
            refused = client.post(path, content=b"x" * 2**20)
            assert refused.status_code == 401
            assert refused.headers["WWW-Authenticate"] == "Bearer"
            assert client.get("/v2/health/live").json() == {"live": True}


def test_a_prefix_of_a_proxy_opens_nothing_more(file: Path) -> None:
    settings: dict[str, Any] = {
        "LIMELIGHT_API_KEYS_FILE": str(file),
        "LIMELIGHT_ROOT_PATH": "/base",
    }
    with start_server(**settings) as server:
        for target, status in {
            "/base/v2/health/live": 200,
            "/v2/health/live": 200,
            "/base": 307,
            "/base/v2/models": 401,
            "/v2/models": 401,
            "/base/base/v2/health/live": 401,
            "/other/v2/health/live": 401,
            "/base/page/../metrics": 401,
        }.items():
            assert (target, send(server, "GET", target, [])[0]) == (target, status)


def test_the_metrics_open_by_their_setting(file: Path) -> None:
    settings: dict[str, Any] = {
        "LIMELIGHT_API_KEYS_FILE": str(file),
        "LIMELIGHT_METRICS_WITHOUT_KEY": "true",
    }
    with start_server(**settings) as server:
        assert send(server, "GET", "/metrics", [])[0] == 200
        assert send(server, "POST", "/metrics", [])[0] == 401
        assert send(server, "GET", "/v2/models", [])[0] == 401


def wait_for_status(server: ServerProcess, key: str, wanted: int) -> None:
    """Ask until a key has this effect."""
    deadline = time.monotonic() + TIMEOUT_S
    while send(server, "GET", "/v2/models", bear(key))[0] != wanted:
        assert time.monotonic() < deadline, "the change of the file was not seen"
        time.sleep(0.05)


def test_keys_change_without_a_restart_and_a_broken_file_locks_nobody_out(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text(write_line("infer", INFER_KEY))
    with start_server(LIMELIGHT_API_KEYS_FILE=str(file)) as server:
        file.write_text(write_line("infer", ADMIN_KEY))
        wait_for_status(server, ADMIN_KEY, 200)
        assert send(server, "GET", "/v2/models", bear(INFER_KEY))[0] == 401
        file.write_text("infer:\n")
        deadline = time.monotonic() + TIMEOUT_S
        while "line 1: expected role:hash" not in server.read_log():
            assert time.monotonic() < deadline
            assert send(server, "GET", "/v2/models", bear(ADMIN_KEY))[0] == 200
        file.write_text(write_line("infer", INFER_KEY))
        wait_for_status(server, INFER_KEY, 200)
