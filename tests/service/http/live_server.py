"""uvicorn with our connections, in a thread, and clients that speak to it byte by byte."""

import asyncio
import contextlib
import functools
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

import uvicorn
from starlette.types import ASGIApp

from service.http.bounds import ConnectionBounds
from service.http.company import Company
from service.http.connection import Connection
from service.http.familiar import Heads
from service.http.prompting import Answerer
from service.http.sweeper import Sweeper

PERIOD_S: Final = 0.05
TIMEOUT_S: Final = 30


@dataclass
class LiveServer:
    """A server that runs.

    Attributes:
        port: of 127.0.0.1 that it listens on.
        server: uvicorn's.
        departures: stages at which clients left.
        cuts: bounds because of which connections were ended.
    """

    port: int
    server: uvicorn.Server
    departures: list[str] = field(default_factory=list)
    cuts: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def opened(self) -> list[Connection]:
        """The connections that are open."""
        connections = list(self.server.server_state.connections)
        return [each for each in connections if isinstance(each, Connection)]

    @property
    def connections(self) -> int:
        """How many are open."""
        return len(self.opened)

    def connect(self) -> socket.socket:
        """A connection to it."""
        return socket.create_connection(("127.0.0.1", self.port), TIMEOUT_S)


class Swept(uvicorn.Server):
    """A server with a sweeper."""

    bounds: ConnectionBounds
    on_cut: Callable[[str], None]

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        sweeper = Sweeper(self.server_state, self.bounds, lambda: self.should_exit, self.on_cut)
        self._sweeping = asyncio.create_task(sweeper.run(PERIOD_S))

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await super().shutdown(sockets)
        self._sweeping.cancel()


@contextmanager
def serve(
    app: ASGIApp,
    *,
    keep_alive_s: int = 60,
    answerer: Answerer | None = None,
    company: Company | None = None,
    **bounds: Any,
) -> Iterator[LiveServer]:
    """A server of `app`; it must stop within `TIMEOUT_S` at the end of the block."""
    departures: list[str] = []
    cuts: list[str] = []
    connection = functools.partial(
        Connection,
        bounds=ConnectionBounds(**bounds),
        on_departure=departures.append,
        on_cut=cuts.append,
        answerer=answerer,
        company=company,
        heads=Heads(),
    )
    config = uvicorn.Config(
        app,
        loop="uvloop",
        http=connection,  # type: ignore[arg-type] # uvicorn only calls it
        ws="none",
        lifespan="off",
        log_config=None,
        timeout_keep_alive=keep_alive_s,
        timeout_graceful_shutdown=TIMEOUT_S,
    )
    server = Swept(config)
    server.bounds, server.on_cut = ConnectionBounds(**bounds), cuts.append
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        wait_until(lambda: server.started)
        try:
            yield LiveServer(port, server, departures, cuts)
        finally:
            server.should_exit = True
            thread.join(TIMEOUT_S)
    assert not thread.is_alive(), "the server did not stop"


def wait_until(is_so: Callable[[], bool], timeout_s: float = TIMEOUT_S) -> None:
    """Wait for something to become true."""
    deadline_s = time.monotonic() + timeout_s
    while not is_so():
        assert time.monotonic() < deadline_s, "it did not become true"
        time.sleep(0.01)


def ask(path: str, body: bytes = b"", *headers: str, method: str = "POST") -> bytes:
    """A request, as bytes."""
    lines = [f"{method} {path} HTTP/1.1", "Host: x", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + body


def read_to_end(connection: socket.socket) -> bytes:
    """What comes until the server closes the connection."""
    return b"".join(iter(lambda: connection.recv(65536), b""))


def read_answer(connection: socket.socket) -> tuple[int, dict[str, str], bytes]:
    """One answer with Content-Length, and no byte more: status, headers, body."""
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        byte = connection.recv(1)
        assert byte, f"the server hung up after {head!r}"
        head += byte
    status, *lines = head.decode("latin-1").strip().split("\r\n")
    headers = {name.lower(): text for name, _, text in (line.partition(": ") for line in lines)}
    body = b""
    while len(body) < int(headers["content-length"]):
        part = connection.recv(int(headers["content-length"]) - len(body))
        assert part, "the server hung up in the middle of a body"
        body += part
    return int(status.split()[1]), headers, body


@contextmanager
def connections(server: LiveServer, count: int) -> Iterator[list[socket.socket]]:
    """Many connections."""
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(server.connect()) for _ in range(count)]


def send_apart(client: socket.socket, *parts: bytes) -> None:
    """Send parts so that the server reads each for itself, or nearly so."""
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for part in parts:
        client.sendall(part)
        time.sleep(0.001)


def split(data: bytes, places: list[int]) -> list[bytes]:
    """Cut at places that may lie beyond the end."""
    cuts = [0, *sorted(place % len(data) for place in places), len(data)]
    return [data[a:b] for a, b in pairwise(cuts)]
