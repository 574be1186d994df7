"""Clients that wait to be told to send their body."""

from collections.abc import Iterator

import pytest

from tests.service.http.live_server import LiveServer, ask, read_answer, serve, wait_until
from tests.service.http.shop import TOO_LARGE, Shop

EXPECT = "Expect: 100-continue"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


@pytest.fixture(name="server")
def start_server() -> Iterator[LiveServer]:
    with serve(Shop()) as server:
        yield server


def test_a_client_is_told_to_send_and_its_connection_stays(server: LiveServer) -> None:
    request = ask("/", b"12345", EXPECT)
    with server.connect() as client:
        for _ in range(2):
            client.sendall(request[:-5])
            assert client.recv(len(CONTINUE)) == CONTINUE
            client.sendall(request[-5:])
            status, headers, body = read_answer(client)
            assert (status, body) == (200, b"5")
            assert "connection" not in headers


def test_a_client_that_wants_its_connection_closed_gets_it_closed(server: LiveServer) -> None:
    request = ask("/", b"12345", EXPECT, "Connection: close")
    with server.connect() as client:
        client.sendall(request[:-5])
        assert client.recv(len(CONTINUE)) == CONTINUE
        client.sendall(request[-5:])
        assert read_answer(client)[1]["connection"] == "close"
        assert client.recv(1) == b""


def test_a_client_that_is_answered_instead_is_told_that_the_connection_ends(
    server: LiveServer,
) -> None:
    """It may or may not send its body then: what follows could be read as either."""
    with server.connect() as client:
        client.sendall(ask("/early", b"12345", EXPECT)[:-5])
        status, headers, body = read_answer(client)
        assert (status, headers["connection"], body) == (413, "close", TOO_LARGE)
        assert client.recv(1) == b""


def test_a_client_that_does_not_wait_is_answered(server: LiveServer) -> None:
    with server.connect() as client:
        client.sendall(ask("/", b"12345", EXPECT))
        assert client.recv(len(CONTINUE)) == CONTINUE
        assert read_answer(client)[2] == b"5"


def test_a_server_that_stops_says_so_to_a_client_that_was_told_to_send() -> None:
    request = ask("/", b"12345", EXPECT)
    with serve(Shop()) as server, server.connect() as client:
        client.sendall(request[:-5])
        assert client.recv(len(CONTINUE)) == CONTINUE
        server.server.should_exit = True
        (connection,) = server.opened
        wait_until(lambda: not connection.cycle.keep_alive)
        client.sendall(request[-5:])
        assert read_answer(client)[1]["connection"] == "close"
