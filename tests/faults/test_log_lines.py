"""Faults of logging: lines that a client forges, and a log that stops the server.

Triton CVE-2024-0095; a standard error that is full, closed, or on a disk without room.
"""

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final

import httpx
import pytest

from tests.faults.process_facts import needs_linux
from tests.integration.demo import draw_tokens
from tests.integration.doors import ATTENTION, DOORS, INFER, ask, write_v2_binary
from tests.integration.server_process import (
    COMMAND,
    PAGE_LINE,
    ROOT,
    STOP_TIMEOUT_S,
    ServerProcess,
    find_free_port,
    launch,
    make_environment,
    wait_for_banner,
)

pytestmark = pytest.mark.skipif(
    "LIMELIGHT_TEST_URL" in os.environ, reason="a deployed server is tested"
)
TENSORS: Final = draw_tokens()
TRACE: Final = "4bf92f3577b34da6a3ce929d0e0e4736"
FORGERY: Final = 'x\r\n{"level":"error","message":"forged"}\x1b[2J\x9b2J\u2028\u202e\x7f'
# The same, as it may stand in a URL.
QUOTED: Final = "".join(f"%{byte:02x}" for byte in FORGERY.encode())


@contextmanager
def logging_server(log: Path, **settings: str) -> Iterator[ServerProcess]:
    """A server whose log is left in a file that outlives it."""
    settings = {"LIMELIGHT_PORT": "0"} | settings
    with (
        log.open("wb") as stream,
        launch(screen=subprocess.PIPE, log=stream, **settings) as process,
    ):
        server = wait_for_banner(process, log)
        yield server
        assert server.stop() == 0


def read_requests(log: Path) -> list[dict[str, Any]]:
    """The lines of requests, after a check that every line is an object."""
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert all({"time", "level", "logger"} <= line.keys() for line in lines)
    return [line for line in lines if line["logger"] == "limelight.requests"]


def test_each_request_has_a_line_that_tells_what_it_was(tmp_path: Path) -> None:
    log = tmp_path / "log"
    body, headers = write_v2_binary(TENSORS, parameters={"weights": "none"})
    with logging_server(log) as server, httpx.Client(base_url=server.url) as client:
        answer = client.post(INFER, content=body, headers=headers | {"X-Request-Id": "mine"})
        traced = client.get(
            "/v2/models", headers={"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"}
        )
        lost = client.get("/v2/models/absent")
        client.get("/v2/health/live")
    first, second, third = read_requests(log)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", first.pop("time"))
    for name in ("queue_ms", "compute_ms", "total_ms"):
        assert 0 <= first.pop(name) < 60_000
    assert first == {
        "level": "info",
        "logger": "limelight.requests",
        "id": "mine",
        "method": "POST",
        "path": "/v2/models/{name}/infer",
        "model": "demo",
        "version": "1",
        "rows": len(TENSORS["query"]),
        "shapes": {name: list(array.shape) for name, array in TENSORS.items()},
        "graph": answer.headers["Limelight-Graph"],
        "status": 200,
        "request_bytes": len(body),
        "response_bytes": len(answer.content),
    }
    assert second["id"] == traced.headers["X-Request-Id"] == TRACE
    assert third["id"] == lost.headers["X-Request-Id"]
    assert third["error"] == lost.json()["error"]
    assert (third["status"], third["model"]) == (404, "absent")


def test_probes_are_told_when_debugging_and_requests_may_be_left_out(tmp_path: Path) -> None:
    log = tmp_path / "log"
    for settings, wanted in (
        ({"LIMELIGHT_LOG_LEVEL": "debug"}, ["/v2/health/ready", "/v2/models"]),
        ({"LIMELIGHT_LOG_REQUESTS": "false"}, []),
        ({"LIMELIGHT_LOG_LEVEL": "warning"}, []),
    ):
        with logging_server(log, **settings) as server:
            for path in ("/v2/health/ready", "/v2/models"):
                httpx.get(f"{server.url}{path}")
        assert [line["path"] for line in read_requests(log)] == wanted


def forge() -> list[tuple[str, str, bytes, dict[str, str]]]:
    """Requests that try to write lines of their own into the log."""
    name = json.dumps(FORGERY).encode()
    return [
        ("GET", f"/{QUOTED}", b"", {}),
        ("GET", f"/v2/models/{QUOTED}", b"", {}),
        ("GET", f"/v2/models/demo?x={QUOTED}", b"", {}),
        ("POST", f"/v2/models/{QUOTED}/infer", b"{}", {}),
        ("POST", INFER, b'{"id": %b, "inputs": [{"name": %b}]}' % (name, name), {}),
        ("POST", INFER, b'{%b: 1, "inputs": []}' % name, {}),
        ("POST", f"{ATTENTION}?causal={QUOTED}", b'{"query": [[1]]}', {}),
        ("POST", ATTENTION, b'{"query": [[1]], %b: 1}' % name, {}),
        ("POST", ATTENTION, b'{"query": [["\\ud800"]], "model": "\\ud800\\u202e"}', {}),
        ("GET", "/v2/models", b"", {"X-Request-Id": "x\x9b2J"}),
        ("GET", "/v2/models", b"", {"traceparent": f"00-{TRACE}\x9b-00f067aa0ba902b7-01"}),
        ("GET", "/v2/models", b"", {"Authorization": "Bearer x\x9b2J"}),
    ]


@pytest.mark.parametrize("log_format", ["json", "text"])
def test_no_client_writes_a_line_of_its_own(tmp_path: Path, log_format: str) -> None:
    log = tmp_path / "log"
    with (
        logging_server(log, LIMELIGHT_LOG_FORMAT=log_format) as server,
        httpx.Client(base_url=server.url) as client,
    ):
        for method, path, body, headers in forge():
            raw = {name.encode(): text.encode("latin-1") for name, text in headers.items()}
            assert client.request(method, path, content=body, headers=raw).status_code < 500
    lines = log.read_text().split("\n")
    assert lines.pop() == ""
    assert all(line.isprintable() for line in lines)
    if log_format == "json":
        told = read_requests(log)
        assert len(told) == len(forge())
        assert {line["level"] for line in told} == {"info"}
        assert told[0]["path"] == f"/{FORGERY}"
    else:
        assert all(re.match(r"\d\d:\d\d:\d\d INFO    ", line) for line in lines)
        assert sum(line[17:].startswith(("GET ", "POST ")) for line in lines) == len(forge())


def ask_often(url: str, times: int) -> None:
    """Ask at one door, many times."""
    with httpx.Client(base_url=url, timeout=STOP_TIMEOUT_S) as client:
        for _ in range(times):
            ask(client, "v2-binary", TENSORS)


@contextmanager
def server_of(stream: IO[bytes] | int) -> Iterator[ServerProcess]:
    """A server whose standard error is given."""
    with launch(
        screen=subprocess.PIPE, log=stream, LIMELIGHT_PORT="0", LIMELIGHT_LOG_FORMAT="json"
    ) as process:
        yield wait_for_banner(process, Path(os.devnull))


def test_a_log_that_nobody_reads_stops_nothing() -> None:
    """A pipe holds 64 KiB: a server that waits for its log would stand after some 200 requests."""
    reader, entry = os.pipe()
    with os.fdopen(reader, "rb") as unread:
        with os.fdopen(entry, "wb") as log, server_of(log) as server:
            ask_often(server.url, 600)
            kept: list[bytes] = []
            # Now it is read, so that what waited is written when the server stops.
            thread = threading.Thread(target=lambda: kept.extend(unread))
            thread.start()
            assert server.stop() == 0
        thread.join(STOP_TIMEOUT_S)
    told = [line for line in map(json.loads, kept) if line["logger"] == "limelight.requests"]
    assert len(told) == 600


def test_a_server_whose_log_nobody_ever_reads_stops_all_the_same() -> None:
    reader, entry = os.pipe()
    with os.fdopen(reader, "rb"), os.fdopen(entry, "wb") as log, server_of(log) as server:
        ask_often(server.url, 600)
        assert server.stop() == 0


def test_a_reader_of_the_log_that_leaves_takes_nobody_with_it() -> None:
    reader, entry = os.pipe()
    with os.fdopen(entry, "wb") as log, server_of(log) as server:
        os.close(reader)
        ask_often(server.url, 20)
        assert server.stop() == 0


@needs_linux
def test_a_disk_without_room_for_the_log_stops_nothing() -> None:
    with Path("/dev/full").open("wb") as log, server_of(log) as server:
        ask_often(server.url, 20)
        assert server.stop() == 0


@needs_linux
def test_without_a_standard_error_no_client_gets_the_log() -> None:
    """Descriptor 2 would be the next that is opened: a connection."""
    port = find_free_port()
    process = subprocess.Popen(
        ["/bin/sh", "-c", 'exec "$@" 2>&-', "sh", *COMMAND],
        cwd=ROOT,
        env=make_environment({"LIMELIGHT_PORT": str(port)}),
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        server = wait_for_banner(process, Path(os.devnull))
        for door in DOORS:
            with httpx.Client(base_url=server.url) as client:
                ask(client, door, TENSORS)
        assert Path(f"/proc/{process.pid}/fd/2").readlink() == Path(os.devnull)
        assert server.stop() == 0
    finally:
        process.kill()
        process.wait()


def test_a_failed_start_is_told_after_all_that_led_to_it(tmp_path: Path) -> None:
    ended = subprocess.run(
        [*COMMAND, "--models", str(tmp_path / "absent"), "--port", "0"],
        cwd=ROOT,
        env=make_environment({}),
        check=False,
        capture_output=True,
        text=True,
        timeout=STOP_TIMEOUT_S,
    )
    assert ended.returncode == 1
    *led, last = ended.stderr.splitlines()
    assert last.startswith("limelight-serve: ")
    assert all(json.loads(line) for line in led)


def test_the_banner_is_no_part_of_the_log(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with logging_server(log) as server:
        assert any(map(PAGE_LINE.match, server.banner))
    assert "page" not in log.read_text()
    assert sys.executable not in log.read_text()
