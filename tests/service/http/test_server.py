"""uvicorn's server: what the first signal does, what the second one does, and what clients see."""

import asyncio
import signal
import socket
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import uvicorn
from starlette.responses import PlainTextResponse

from service.http.server import Server
from tests.service.http.live_server import TIMEOUT_S, ask, read_answer, wait_until

LONG_MS = 600_000


class Calls:
    """Notes what a server calls, in order."""

    def __init__(self, *, serves: bool = True) -> None:
        self.names: list[str] = []
        self.codes: list[int] = []
        self._serves = serves

    def drain(self) -> bool:
        self.names.append("drain")
        return self._serves

    def stop(self) -> None:
        self.names.append("stop")


MakeServer = Callable[..., Server]


@pytest.fixture
def make_server() -> MakeServer:
    def make(calls: Calls, drain_delay_ms: int) -> Server:
        config = uvicorn.Config(
            PlainTextResponse("served"), lifespan="off", log_config=None, server_header=False
        )
        config.load()
        return Server(config, calls.stop, calls.drain, drain_delay_ms, calls.codes.append)

    return make


def tick(server: Server) -> bool:
    """Whether the server stops at this tick."""
    return asyncio.run(server.on_tick(1))


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
def test_at_the_first_signal_it_drains_and_stops_when_the_delay_is_over(
    make_server: MakeServer, monkeypatch: pytest.MonkeyPatch, sent: int
) -> None:
    now_s = 1000.0
    monkeypatch.setattr("service.http.server.time", SimpleNamespace(monotonic=lambda: now_s))
    calls = Calls()
    server = make_server(calls, 1500)
    assert not tick(server)
    server.handle_exit(sent, None)
    assert calls.names == ["drain"]
    now_s += 1.4
    assert not tick(server)
    assert calls.names == ["drain"]
    now_s += 0.2
    assert tick(server)
    assert tick(server)
    assert calls.names == ["drain", "stop"]


@pytest.mark.parametrize(("serves", "delay_ms"), [(True, 0), (False, LONG_MS)])
def test_without_a_delay_or_work_it_stops_with_the_next_tick(
    make_server: MakeServer, serves: bool, delay_ms: int
) -> None:
    calls = Calls(serves=serves)
    server = make_server(calls, delay_ms)
    server.handle_exit(signal.SIGTERM, None)
    assert tick(server)
    assert calls.names == ["drain", "stop"]
    assert calls.codes == []


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_the_second_signal_ends_the_process(make_server: MakeServer, sent: int, code: int) -> None:
    calls = Calls()
    server = make_server(calls, LONG_MS)
    server.handle_exit(signal.SIGTERM, None)
    assert calls.codes == []
    server.handle_exit(sent, None)
    assert calls.codes == [code]
    assert calls.names == ["drain"]


def ask_for(connection: socket.socket) -> list[str]:
    """The Connection headers of an answer."""
    connection.sendall(ask("/", method="GET"))
    status, headers, body = read_answer(connection)
    assert (status, body) == (200, b"served")
    return [headers[name] for name in headers if name == "connection"]


def test_while_it_drains_it_answers_and_asks_clients_to_connect_anew(
    make_server: MakeServer,
) -> None:
    calls = Calls()
    server = make_server(calls, LONG_MS)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        wait_until(lambda: server.started)
        address: Any = listener.getsockname()
        with socket.create_connection(address, TIMEOUT_S) as kept:
            assert ask_for(kept) == []
            assert ask_for(kept) == []
            server.handle_exit(signal.SIGTERM, None)
            wait_until(lambda: (b"connection", b"close") in server.server_state.default_headers)
            assert ask_for(kept) == ["close"]
            assert kept.recv(1) == b""
        before = server.server_state.default_headers
        wait_until(lambda: server.server_state.default_headers is not before)  # once a second
        with socket.create_connection(address, TIMEOUT_S) as other:
            other.sendall(ask("/", method="GET"))
            answer = b"".join(iter(lambda: other.recv(65536), b""))
        assert answer.lower().count(b"connection: close\r\n") == 1
        assert answer.endswith(b"served")
        assert calls.names == ["drain"]
        server.should_exit = True
        thread.join(TIMEOUT_S)
    assert not thread.is_alive()
