"""Work ends when the client leaves, and not before; the stage at which it left is told."""

import asyncio
import socket
import struct
from typing import Any, get_args

import pytest
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from service.errors import ClientLeftError
from service.http.departure import STATE, Presence, Stage, get_presence, work_while_present
from tests.service.http.live_server import (
    LiveServer,
    ask,
    connections,
    read_answer,
    serve,
    wait_until,
)
from tests.service.http.shop import Shop

LEFT = "the client left before its answer was ready"
LARGE = 16 * 2**20  # more than the kernel's buffers take
MANY = 20


def make_request(presence: Presence | None = None) -> Request:
    state = {} if presence is None else {STATE: presence}
    return Request({"type": "http", "headers": [], "state": state})


async def wait_for_ever() -> None:
    await asyncio.Event().wait()


@pytest.mark.parametrize("presence", [None, Presence()])
async def test_work_for_a_client_that_stays_is_done(presence: Presence | None) -> None:
    async def work() -> str:
        return "answer"

    assert await work_while_present(make_request(presence), work()) == "answer"


async def test_an_error_of_the_work_is_passed_on() -> None:
    async def work() -> Any:
        raise ValueError("broken")

    with pytest.raises(ValueError, match=r"^broken$"):
        await work_while_present(make_request(), work())


async def test_work_for_a_client_that_leaves_is_cancelled() -> None:
    presence = Presence()

    async def work() -> None:
        for _ in range(2):  # a refusal, and then the end of the connection
            asyncio.get_running_loop().call_soon(presence.leave)
        try:
            await wait_for_ever()
        except asyncio.CancelledError:
            presence.stage = "encode"  # it was here
            raise

    with pytest.raises(ClientLeftError, match=f"^{LEFT}$"):
        await work_while_present(make_request(presence), work())
    assert presence.stage == "encode"
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0, "what comes next would be cancelled too"


async def test_work_for_a_client_that_has_left_already_is_not_begun() -> None:
    presence = Presence()
    presence.leave()

    async def work() -> None:
        raise AssertionError

    with pytest.raises(ClientLeftError, match=f"^{LEFT}$"):
        await work_while_present(make_request(presence), work())


async def test_what_follows_the_work_is_not_cancelled() -> None:
    presence = Presence()

    async def work() -> None:
        await asyncio.sleep(0)

    await work_while_present(make_request(presence), work())
    presence.leave()
    await asyncio.sleep(0)


async def test_work_is_cancelled_with_the_request_itself() -> None:
    presence = Presence()
    task = asyncio.create_task(work_while_present(make_request(presence), wait_for_ever()))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_the_end_of_the_server_goes_before_a_departure() -> None:
    presence = Presence()
    task = asyncio.create_task(work_while_present(make_request(presence), wait_for_ever()))
    await asyncio.sleep(0)
    task.cancel()
    presence.leave()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_where_no_connection_says_so_nobody_leaves() -> None:
    assert not get_presence({"type": "http"}).has_left
    assert not get_presence({"type": "http", "state": {}}).has_left


def test_a_request_is_alone_while_no_other_is_there() -> None:
    tasks: set[object] = {"its own"}
    presence = Presence(tasks)
    assert presence.is_alone()
    tasks.add("another")
    assert not presence.is_alone()
    tasks.clear()
    assert presence.is_alone()


def test_where_nobody_counts_the_requests_none_is_alone() -> None:
    assert not Presence().is_alone()
    assert not get_presence({"type": "http"}).is_alone()


def test_the_requests_of_all_connections_are_counted() -> None:
    alone: list[bool] = []
    shop = Shop()

    async def note(scope: Scope, receive: Receive, send: Send) -> None:
        alone.append(get_presence(scope).is_alone())
        await shop(scope, receive, send)

    with serve(note) as server, server.connect() as first, server.connect() as second:
        for _ in range(2):  # what was answered counts no more
            first.sendall(ask("/"))
            read_answer(first)
        first.sendall(ask("/work"))
        wait_until(lambda: shop.begun == 1)
        second.sendall(ask("/"))
        read_answer(second)
        shop.release.set()
        read_answer(first)
    assert alone == [True, True, True, False]


def reset(client: socket.socket) -> None:
    """Leave as a process does that is killed with unread bytes: TCP's reset."""
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()


HALF = ask("/work", b"12345")[:-2]


@pytest.mark.parametrize("leave", [socket.socket.close, reset], ids=["close", "reset"])
@pytest.mark.parametrize(
    ("stage", "sent"),
    [
        ("head", b"POST /work HT"),
        ("body", HALF),
        ("answer", ask(f"/large?{LARGE}")),
        *((stage, HALF + b"45") for stage in ("work", "encode")),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_stage_at_which_clients_leave_is_told(stage: Stage, sent: bytes, leave: Any) -> None:
    shop = Shop(stage)
    with serve(shop) as server, connections(server, MANY) as clients:
        for client in clients:
            client.sendall(sent)
        wait_until(lambda: is_reached(server, shop, stage))
        for client in clients:
            leave(client)
        wait_until(lambda: server.connections == 0)
    assert server.departures == [stage] * MANY
    if stage not in ("head", "answer"):
        assert shop.ended == [LEFT] * MANY


def is_reached(server: LiveServer, shop: Shop, stage: Stage) -> bool:
    """Whether all clients are where they want to leave."""
    match stage:
        case "head":
            return sum(each.line.is_client_sending for each in server.opened) == MANY
        case "body":
            return len(shop.heads) == MANY
        case "answer":
            return sum(each.blocked_since_s is not None for each in server.opened) == MANY
    return shop.begun == MANY


def test_every_stage_has_a_name_that_a_metric_can_hold() -> None:
    assert set(get_args(Stage)) == {"head", "body", "work", "encode", "answer"}


def test_who_closes_its_side_alone_has_left() -> None:
    shop = Shop()
    with serve(shop) as server, server.connect() as client:
        client.sendall(ask("/work"))
        wait_until(lambda: shop.begun == 1)
        client.shutdown(socket.SHUT_WR)
        assert client.recv(1) == b""
        wait_until(lambda: shop.ended == [LEFT])


def test_a_large_body_does_not_hide_a_departure() -> None:
    """uvicorn stops reading when much has come that was not asked for."""
    shop = Shop()
    with serve(shop) as server:
        with server.connect() as client:
            client.sendall(ask("/work", bytes(10 * 2**20)))
            wait_until(lambda: shop.begun == 1)
        wait_until(lambda: shop.ended == [LEFT])
        assert server.departures == ["work"]


def test_a_client_that_has_its_answer_has_not_left() -> None:
    with serve(Shop()) as server:
        with server.connect() as client:
            client.sendall(ask("/", b"12"))
            assert client.recv(65536).endswith(b"2")
        wait_until(lambda: server.connections == 0)
        assert server.departures == []
