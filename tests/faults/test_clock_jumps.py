"""A clock that is set while the server runs: nobody is cut off, and everybody late still is."""

import ast
import os
import re
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import httpx
import pytest

from tests.integration.demo import check_close, draw_tokens, expect
from tests.integration.doors import DOORS, INFER, ask, write_v2_binary
from tests.integration.server_process import ROOT, ServerProcess, start_server

JUMPING: Final = Path(__file__).parent / "jumping"
SERVICE: Final = ROOT / "service"
DECADE_S: Final = 315_360_000
HEADER_TIMEOUT_S: Final = 3
TIMEOUT_S: Final = 60
# What tells the time of day, which is set forward and back.
OF_THE_DAY: Final = {"time", "time_ns", "now", "utcnow", "today", "localtime", "gmtime"}
# A time for people, and the age of files, whose times are of this clock.
EXCUSED: Final = {
    "statistics.py",
    "engine/fingerprint.py",
    "http/request_log.py",
    "histograms.py",
}


def find_clocks(source: str) -> set[str]:
    """The clocks of the day that a module asks."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Attribute(value=ast.Name(id="time" | "datetime" | "date"), attr=name):
                found.add(name)
            case ast.ImportFrom(module="time", names=names):
                found |= {each.name for each in names}
            case _:
                pass
    return found & OF_THE_DAY


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import time\ntime.time()", {"time"}),
        ("import time\nfield(default_factory=time.time_ns)", {"time_ns"}),
        ("from time import time, monotonic", {"time"}),
        ("from datetime import datetime\ndatetime.now(UTC)", {"now"}),
        ("import time\ntime.monotonic() + time.perf_counter_ns()", set()),
        ("loop.time()", set()),
    ],
)
def test_the_search_finds_clocks_that_are_set(source: str, found: set[str]) -> None:
    assert find_clocks(source) == found


def test_no_deadline_is_one_of_a_clock_that_is_set() -> None:
    asking = {
        path.relative_to(SERVICE).as_posix()
        for path in SERVICE.rglob("*.py")
        if find_clocks(path.read_text())
    }
    assert asking == EXCUSED


@contextmanager
def begin_a_head(server: ServerProcess) -> Iterator[socket.socket]:
    """A connection that has sent the beginning of a request for the health."""
    address = urlsplit(server.url)
    with socket.create_connection((address.hostname, address.port), TIMEOUT_S) as client:
        client.sendall(b"GET /v2/health/live HTTP/1.1\r\n")
        yield client


def wait_for_another_date(client: httpx.Client, year: int) -> int:
    """The year of the server's clock, once it is another one."""
    deadline = time.monotonic() + TIMEOUT_S
    while (now := read_year(client)) == year:
        assert time.monotonic() < deadline
    return now


def read_year(client: httpx.Client) -> int:
    """The year of the server's clock, as its answers tell it."""
    return parsedate_to_datetime(client.get("/v2/health/live").headers["Date"]).year


@pytest.mark.skipif("LIMELIGHT_TEST_URL" in os.environ, reason="a deployed server is tested")
@pytest.mark.parametrize("offset_s", [DECADE_S, -DECADE_S], ids=["forward", "back"])
def test_a_clock_that_is_set_cuts_nobody_and_spares_nobody(tmp_path: Path, offset_s: int) -> None:
    clock, tensors = tmp_path / "clock", draw_tokens()
    large = draw_tokens(batch_size=8, query_length=1024, key_length=1000)
    body, headers = write_v2_binary(large, parameters={"timeout": TIMEOUT_S * 10**6})
    settings: dict[str, Any] = {
        "PYTHONPATH": str(JUMPING),
        "LIMELIGHT_TEST_CLOCK": str(clock),
        "LIMELIGHT_INFERENCE_THREADS": "1",
        "LIMELIGHT_HEADER_TIMEOUT_S": str(HEADER_TIMEOUT_S),
    }
    with (
        start_server(**settings) as server,
        httpx.Client(base_url=server.url, timeout=TIMEOUT_S) as client,
        ThreadPoolExecutor(2) as pool,
    ):
        year = read_year(client)
        waiting = [pool.submit(client.post, INFER, content=body, headers=headers) for _ in "ab"]
        with begin_a_head(server) as begun:
            clock.write_text(str(offset_s))
            begun.sendall(b"Host: limelight\r\n\r\n")
            assert begun.recv(65536).startswith(b"HTTP/1.1 200 ")
        assert abs(wait_for_another_date(client, year) - year) in (9, 10)
        assert [each.result().status_code for each in waiting] == [200, 200]
        for door in DOORS:
            check_close(ask(client, door, tensors), expect(tensors))
        assert client.get("/v2/health/ready").status_code == 200
        with begin_a_head(server) as late:
            assert late.recv(65536).startswith(b"HTTP/1.1 408 ")
        years = set(re.findall(r'"time":"(\d{4})-', server.log_file.read_text()))
        assert len(years) == 2
