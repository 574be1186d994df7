"""The server of a worker: when it takes connections, and what signals do."""

import asyncio
import signal
import socket
from collections.abc import Iterator
from contextlib import suppress

import pytest
import uvicorn
from starlette.responses import PlainTextResponse

from service.workers.server import WorkerServer
from service.workers.turns import Seat, Turns
from tests.service.http.live_server import wait_until

PATIENCE_S = 60
REQUEST = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"


@pytest.fixture(name="listener")
def listen() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener


@pytest.fixture(name="turns")
def make_turns() -> Turns:
    return Turns(2)


def make_server(turns: Turns, place: int, *, is_late: bool = False) -> WorkerServer:
    """A worker that answers all with its place."""
    app = PlainTextResponse(f"worker {place}")
    config = uvicorn.Config(app, lifespan="off", log_config=None)
    config.load()
    return WorkerServer(Seat(turns, place, is_late=is_late), config, lambda: None)


async def ask(listener: socket.socket) -> bytes:
    """The last line of an answer."""
    reader, writer = await asyncio.open_connection(*listener.getsockname())
    writer.write(REQUEST)
    answer = await asyncio.wait_for(reader.read(), PATIENCE_S)
    writer.close()
    with suppress(ConnectionError):
        await writer.wait_closed()
    return answer.splitlines()[-1]


async def start(server: WorkerServer, listener: socket.socket) -> None:
    """What uvicorn does before it starts a server."""
    server.lifespan = server.config.lifespan_class(server.config)
    await server.startup([listener])


async def test_it_accepts_from_the_start_on(listener: socket.socket, turns: Turns) -> None:
    server = make_server(turns, 1)
    await start(server, listener)
    assert await ask(listener) == b"worker 1"
    await server.shutdown([listener])


async def test_one_that_is_late_accepts_when_it_is_told_to(
    listener: socket.socket, turns: Turns
) -> None:
    server, late = make_server(turns, 0), make_server(turns, 1, is_late=True)
    with listener.dup() as copy:
        await start(server, listener)
        await start(late, copy)
        for _ in range(3):
            assert await ask(listener) == b"worker 0"
        await server.shutdown([])
        late.accept()
        late.accept()  # a second time does nothing
        assert await ask(listener) == b"worker 1"
        await late.shutdown([])


async def test_one_that_is_told_to_accept_too_early_does_so_from_the_start_on(
    listener: socket.socket, turns: Turns
) -> None:
    server = make_server(turns, 0, is_late=True)
    server.accept()
    await start(server, listener)
    assert await ask(listener) == b"worker 0"
    await server.shutdown([listener])


async def test_others_see_how_many_connections_it_has_until_it_stops(
    listener: socket.socket, turns: Turns
) -> None:
    server, other = make_server(turns, 0), Seat(turns, 1, is_late=False)
    other.write(1)
    await start(server, listener)
    assert not other.is_next()
    _, writer = await asyncio.open_connection(*listener.getsockname())
    await asyncio.to_thread(wait_until, other.is_next)
    other.write(2)
    assert not other.is_next()
    await server.shutdown([listener])
    assert other.is_next()
    writer.close()
    with suppress(ConnectionError):
        await writer.wait_closed()


async def test_one_that_leaves_lets_others_accept_and_its_clients_go(
    listener: socket.socket, turns: Turns
) -> None:
    server, other = make_server(turns, 0), make_server(turns, 1)
    with listener.dup() as copy:
        await start(server, listener)
        reader, writer = await asyncio.open_connection(*listener.getsockname())
        await asyncio.to_thread(wait_until, lambda: len(server.server_state.connections) == 1)
        await start(other, copy)
        server.leave()
        await asyncio.sleep(0)
        for _ in range(3):
            assert await ask(listener) == b"worker 1"
        writer.write(REQUEST.replace(b"close", b"keep-alive"))
        answer = await asyncio.wait_for(reader.read(), PATIENCE_S)
        assert b"\r\nconnection: close\r\n" in answer
        assert answer.endswith(b"worker 0")
        writer.close()
        await writer.wait_closed()
        await server.shutdown([])
        await other.shutdown([])


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
async def test_a_second_signal_does_nothing_as_the_supervisor_repeats_it(
    turns: Turns, sent: int
) -> None:
    server = make_server(turns, 0)
    server.handle_exit(sent, None)
    server.handle_exit(signal.SIGTERM, None)
    assert await server.on_tick(1)
