"""Deadlines of connections: heads, answers, idle clients, and the end of the server."""

import logging
import time

import pytest

from tests.service.http.live_server import (
    LiveServer,
    ask,
    read_answer,
    read_to_end,
    serve,
    wait_until,
)
from tests.service.http.shop import Shop
from tests.service.http.test_connection import read_refusal

LONG_S = 3600
LARGE = 32 * 2**20  # more than the kernel's buffers take
TOO_SLOW = (
    "the request line and headers did not come within 0.5 s (LIMELIGHT_HEADER_TIMEOUT_S): send "
    "them at once"
)
NOT_TAKEN = (
    "a client did not take its answer within 0.5 s (LIMELIGHT_ANSWER_TIMEOUT_S): its connection is "
    "closed"
)


def trickle(server: LiveServer, head: bytes) -> bytes:
    """Send a byte at a time until the server answers; the answer."""
    with server.connect() as client:
        client.settimeout(0.1)
        for byte in head:
            client.sendall(bytes([byte]))
            try:
                answer = client.recv(65536)
            except TimeoutError:
                continue
            client.settimeout(30)
            return answer + read_to_end(client)
    raise AssertionError("the server took it all")


def test_a_head_that_comes_too_slowly_is_answered_and_its_connection_closed() -> None:
    with serve(Shop(), header_timeout_s=0.5) as server:
        answer = trickle(server, ask("/", b"", "Name: " + "x" * 200))
        assert read_refusal(answer, "408 Request Timeout") == TOO_SLOW
        assert server.cuts == ["header_timeout_s"]


def test_the_next_head_of_a_connection_has_a_deadline_of_its_own() -> None:
    with serve(Shop(), header_timeout_s=0.5) as server, server.connect() as client:
        for _ in range(2):
            client.sendall(ask("/", b"12"))
            assert read_answer(client)[2] == b"2"
            time.sleep(0.8)  # an idle connection is no slow one
        client.sendall(b"P")
        assert read_refusal(read_to_end(client), "408 Request Timeout") == TOO_SLOW


def test_who_says_nothing_is_not_told_anything() -> None:
    with serve(Shop(), header_timeout_s=0.5) as server, server.connect() as client:
        assert read_to_end(client) == b""
        assert server.cuts == []


def test_a_request_that_is_worked_on_has_no_deadline_here() -> None:
    shop = Shop()
    with (
        serve(shop, header_timeout_s=0.3, answer_timeout_s=0.3) as server,
        server.connect() as client,
    ):
        client.sendall(ask("/work"))
        wait_until(lambda: shop.begun == 1)
        time.sleep(1)
        shop.release.set()
        assert read_answer(client)[2] == b"done"


@pytest.mark.parametrize("connection", ["keep-alive", "close"])
def test_an_answer_that_is_not_taken_is_cut(
    caplog: pytest.LogCaptureFixture, connection: str
) -> None:
    with serve(Shop(), answer_timeout_s=0.5) as server, server.connect() as client:
        client.sendall(ask(f"/large?{LARGE}", b"", f"Connection: {connection}"))
        wait_until(lambda: server.cuts == ["answer_timeout_s"])
        wait_until(lambda: server.connections == 0)
        assert server.departures == []
    assert (NOT_TAKEN, logging.WARNING) in [(r.getMessage(), r.levelno) for r in caplog.records]


def test_an_answer_that_is_taken_slowly_but_in_time_is_whole() -> None:
    with serve(Shop(), answer_timeout_s=LONG_S) as server, server.connect() as client:
        client.sendall(ask(f"/large?{LARGE}", b"", "Connection: close"))
        time.sleep(1)
        assert len(read_to_end(client)) > LARGE
        assert server.cuts == []


def test_empty_lines_do_not_keep_a_connection_open() -> None:
    with serve(Shop(), keep_alive_s=1) as server, server.connect() as client:
        client.sendall(ask("/", b"12"))
        read_answer(client)
        client.sendall(b"\r\n")  # uvicorn's own timer ends with the first byte
        assert read_to_end(client) == b""


def test_a_connection_whose_answer_came_early_does_not_stay_open_for_ever() -> None:
    with serve(Shop(), keep_alive_s=1) as server, server.connect() as client:
        client.sendall(ask("/early", b"12345")[:-5])
        read_answer(client)
        client.sendall(b"12345")
        assert read_to_end(client) == b""
        assert server.cuts == []


def stop(server: LiveServer) -> None:
    server.server.should_exit = True


def test_a_request_that_is_on_its_way_when_the_server_stops_is_answered() -> None:
    with serve(Shop(), idle_grace_s=2) as server, server.connect() as client:
        client.sendall(ask("/", b"12"))
        read_answer(client)
        stop(server)
        wait_until_told(server)
        client.sendall(ask("/", b"123"))
        status, headers, body = read_answer(client)
        assert (status, headers["connection"], body) == (200, "close", b"3")
        assert client.recv(1) == b""


def test_a_head_that_has_begun_when_the_server_stops_is_waited_for() -> None:
    request = ask("/", b"123")
    with serve(Shop(), idle_grace_s=0.1) as server, server.connect() as client:
        client.sendall(request[:20])
        wait_until(lambda: server.connections == 1)
        stop(server)
        time.sleep(1)
        client.sendall(request[20:])
        status, headers, body = read_answer(client)
        assert (status, headers["connection"], body) == (200, "close", b"3")


def test_a_request_in_work_when_the_server_stops_is_answered_with_close() -> None:
    shop = Shop()
    with serve(shop) as server, server.connect() as client:
        client.sendall(ask("/work"))
        wait_until(lambda: shop.begun == 1)
        stop(server)
        wait_until_told(server)
        shop.release.set()
        status, headers, body = read_answer(client)
        assert (status, headers["connection"], body) == (200, "close", b"done")
        assert client.recv(1) == b""


def test_an_idle_connection_is_closed_when_the_server_stops() -> None:
    with serve(Shop(), idle_grace_s=0.1) as server, server.connect() as client:
        client.sendall(ask("/", b"12"))
        read_answer(client)
        stop(server)
        assert client.recv(1) == b""


def wait_until_told(server: LiveServer) -> None:
    """Wait until nobody listens any more: uvicorn tells its connections in the same moment."""

    def is_refused() -> bool:
        try:
            server.connect().close()
        except ConnectionError:
            return True
        return False

    wait_until(is_refused)


def test_one_connection_that_fails_does_not_end_the_deadlines_of_the_others(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("broken")

    with serve(Shop(), header_timeout_s=0.5) as server, server.connect() as broken:
        wait_until(lambda: server.connections == 1)
        (connection,) = server.opened
        monkeypatch.setattr(connection, "is_busy", fail)
        with server.connect() as client:
            assert read_to_end(client) == b""
        broken.close()
    assert "a connection's deadlines could not be checked" in caplog.messages
