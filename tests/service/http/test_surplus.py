"""Connections beyond the bound are told so, and those within it notice nothing."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from service.http.surplus import MAX_SURPLUS
from tests.service.http.live_server import (
    LiveServer,
    ask,
    connections,
    read_answer,
    read_to_end,
    serve,
    wait_until,
)
from tests.service.http.shop import Shop

MAX = 3
SURPLUS = {
    "error": "3 connections are open already, expected no more (LIMELIGHT_MAX_CONNECTIONS); try "
    "again later, or keep fewer connections open"
}


@pytest.fixture(name="server")
def start_server() -> Iterator[LiveServer]:
    with serve(Shop(), max_connections=MAX) as server:
        yield server


def test_a_connection_beyond_the_bound_is_refused_and_closed(server: LiveServer) -> None:
    with connections(server, MAX) as within, server.connect() as beyond:
        for client in within:
            client.sendall(ask("/", b"12"))
            assert read_answer(client)[2] == b"2"
        beyond.sendall(ask("/", b"12", "X-Request-Id: mine"))
        status, headers, body = read_answer(beyond)
        assert status == 503
        assert headers["retry-after"] == "1"
        assert headers["connection"] == "close"
        assert headers["content-type"] == "application/json"
        assert headers["x-request-id"] == "mine"
        assert json.loads(body) == SURPLUS
        assert beyond.recv(1) == b""
        for client in within:
            client.sendall(ask("/", b"123"))
            assert read_answer(client)[2] == b"3"
    assert server.cuts == ["max_connections"]


def test_a_large_request_beyond_the_bound_is_told_too(server: LiveServer) -> None:
    with connections(server, MAX), server.connect() as beyond:
        beyond.sendall(ask("/", bytes(10 * 2**20)))
        assert json.loads(read_answer(beyond)[2]) == SURPLUS


def test_there_is_room_again_when_one_has_left(server: LiveServer) -> None:
    with connections(server, MAX - 1), server.connect() as leaving:
        wait_until(lambda: server.connections == MAX)
        leaving.close()
        wait_until(lambda: server.connections == MAX - 1)
        with server.connect() as client:
            client.sendall(ask("/", b"12"))
            assert read_answer(client)[0] == 200


@pytest.mark.parametrize("path", ["/v2/health/live", "/v2/health/ready", "/metrics"])
def test_the_state_of_a_full_server_can_be_asked_for(server: LiveServer, path: str) -> None:
    with connections(server, MAX), server.connect() as beyond:
        for _ in range(2):
            beyond.sendall(ask(path, method="GET"))
            assert read_answer(beyond)[0] == 200
    assert server.cuts == []


def test_many_more_are_refused_before_they_say_anything(server: LiveServer) -> None:
    with connections(server, MAX + MAX_SURPLUS), server.connect() as beyond:
        head, _, body = read_to_end(beyond).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
        assert b"retry-after: 1\r\n" in head
        assert json.loads(body) == SURPLUS
        wait_until(lambda: server.connections == MAX + MAX_SURPLUS)
    assert server.cuts == ["max_connections"]


WITHOUT_DESCRIPTORS = """
import resource, socket
from tests.service.http.live_server import ask, read_answer, serve, wait_until
from tests.service.http.shop import Shop

with serve(Shop()) as server:
    first = server.connect()
    wait_until(lambda: server.connections == 1)
    resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
    clients = []
    try:
        while True:
            clients.append(server.connect())
    except OSError:
        pass
    assert server.connections < 40
    first.sendall(ask("/", b"12"))
    assert read_answer(first)[2] == b"2"
    for client in clients:
        client.close()
    wait_until(lambda: server.connections == 1)
    with server.connect() as client:
        client.sendall(ask("/", b"123"))
        assert read_answer(client)[2] == b"3"
    first.close()
print("served on")
"""


def test_a_server_without_descriptors_serves_on() -> None:
    """uvloop closes what it cannot accept (libuv keeps a descriptor for that)."""
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_DESCRIPTORS],
        cwd=root,
        env=os.environ | {"PYTHONPATH": str(root)},
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout == "served on\n", done.stderr
