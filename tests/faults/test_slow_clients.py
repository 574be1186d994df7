"""Faults of servers whose clients are slow, on purpose or by nature: all connections held."""

import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from tests.service.http.live_server import (
    LiveServer,
    ask,
    connections,
    read_answer,
    serve,
    wait_until,
)
from tests.service.http.shop import Shop

MANY = 50
TIMEOUT_S = 1.0
LARGE = 16 * 2**20  # more than the kernel's buffers take
REQUEST = ask("/", b"12345", "X-Padding: " + "x" * 1000)


def send_a_byte(client: socket.socket, number: int) -> None:
    """One more byte of a head that does not end in time."""
    client.sendall(REQUEST[number : number + 1])


def ask_for_much(client: socket.socket, number: int) -> None:
    """A large answer, of which nothing is read."""
    if number == 0:
        client.sendall(ask(f"/large?{LARGE}"))


def stay_silent(_: socket.socket, __: int) -> None:
    """Nothing at all."""


def send_without_end(client: socket.socket, number: int) -> None:
    """A body that goes on though it was refused."""
    head = b"POST /early HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    client.sendall(b"1\r\nx\r\n" if number else head)


Habit = Callable[[socket.socket, int], None]
HABITS: list[Habit] = [send_a_byte, ask_for_much, stay_silent, send_without_end]


@pytest.fixture(name="server")
def start_server() -> Iterator[LiveServer]:
    with serve(
        Shop(),
        header_timeout_s=TIMEOUT_S,
        answer_timeout_s=TIMEOUT_S,
        drain_timeout_s=TIMEOUT_S,
    ) as server:
        yield server


@pytest.mark.parametrize("habit", HABITS, ids=lambda habit: habit.__name__)
def test_slow_clients_are_cut_and_others_answered_meanwhile(
    server: LiveServer, habit: Habit
) -> None:
    """Slowloris; Triton: CVE-2026-47476, CVE-2026-47482."""
    with (
        server.connect() as normal,
        connections(server, MANY) as slow,
        ThreadPoolExecutor(1) as pool,
    ):
        wait_until(lambda: server.connections == MANY + 1)
        being_slow = pool.submit(be_slow, slow, habit, server)
        answers = 0
        while server.connections > 1:
            normal.sendall(ask("/", b"123"))
            assert read_answer(normal)[::2] == (200, b"3")
            answers += 1
            time.sleep(0.01)
        being_slow.result()
    assert answers > 5


def be_slow(clients: list[socket.socket], habit: Habit, server: LiveServer) -> None:
    """Keep up a habit until the server has closed the connections."""
    for number in range(len(REQUEST)):
        for client in clients:
            try:
                habit(client, number)
            except ConnectionError:
                continue
        if server.connections <= 1:
            return
        time.sleep(0.05)
    raise AssertionError("the server did not cut them")


def test_slow_connections_beyond_the_bound_keep_nobody_from_watching_the_server() -> None:
    with serve(Shop(), max_connections=MANY) as server, ExitStack() as stack:
        for client in stack.enter_context(connections(server, MANY)):
            client.sendall(b"P")
        with server.connect() as probe:
            probe.sendall(ask("/v2/health/live", method="GET"))
            assert read_answer(probe)[0] == 200
