"""The head of an answer waits for its body, and for nothing longer than a turn of the loop."""

import asyncio
import socket
from collections.abc import Callable
from typing import Any

import pytest
import uvloop
from starlette.types import Receive, Scope, Send

from service.http.answer_writer import AnswerWriter
from tests.service.http.live_server import ask, read_answer, read_to_end, serve

HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n"
BODY = b"body"


class Loop:
    """An event loop that has its next turn when it is told to."""

    def __init__(self) -> None:
        self.calls: list[Callable[[], None]] = []

    def call_soon(self, call: Callable[[], None]) -> None:
        self.calls.append(call)

    def turn(self) -> None:
        calls, self.calls = self.calls, []
        for call in calls:
            call()


class Transport:
    """Notes what one system call each would write."""

    def __init__(self) -> None:
        self.written: list[bytes] = []

    def write(self, data: bytes) -> None:
        self.written.append(data)

    def writelines(self, parts: tuple[bytes, ...]) -> None:
        self.written.append(b"".join(parts))

    def is_closing(self) -> bool:
        return False


class Desk:
    """A writer with a transport and a loop that are looked into."""

    def __init__(self) -> None:
        self.transport, self.loop = Transport(), Loop()
        transport: Any = self.transport
        self.writer = AnswerWriter(transport, self.loop.call_soon)

    @property
    def written(self) -> list[bytes]:
        return self.transport.written


@pytest.fixture(name="desk")
def make_desk() -> Desk:
    return Desk()


def test_a_head_and_its_body_are_written_at_once(desk: Desk) -> None:
    desk.writer.write(HEAD)
    assert desk.written == []
    desk.writer.write(BODY)
    assert desk.written == [HEAD + BODY]
    desk.loop.turn()
    assert desk.written == [HEAD + BODY], "nothing twice"


def test_a_head_without_a_body_is_written_with_the_next_turn(desk: Desk) -> None:
    desk.writer.write(HEAD)
    desk.loop.turn()
    assert desk.written == [HEAD]
    desk.writer.write(BODY)
    assert desk.written == [HEAD, BODY]


def test_an_empty_body_ends_the_waiting(desk: Desk) -> None:
    desk.writer.write(HEAD)
    desk.writer.write(b"")
    assert desk.written == [HEAD]


def test_what_is_no_head_is_written_at_once(desk: Desk) -> None:
    for part in (BODY, b"", b"HTTP/1.1"):
        desk.writer.write(part)
    assert desk.written == [BODY, b"", b"HTTP/1.1"]


def test_two_heads_in_one_turn_keep_their_order(desk: Desk) -> None:
    other = HEAD.replace(b"200 OK", b"404 Not Found")
    desk.writer.write(HEAD)
    desk.writer.write(other)
    desk.loop.turn()
    desk.writer.write(BODY)
    assert b"".join(desk.written) == HEAD + other + BODY


def test_parts_that_belong_together_are_written_at_once_behind_what_is_kept(desk: Desk) -> None:
    desk.writer.write_all((HEAD, memoryview(BODY), BODY))
    assert desk.written == [HEAD + BODY + BODY]
    desk.writer.write(HEAD)
    desk.writer.write_all((HEAD, BODY))
    assert desk.written[1:] == [HEAD, HEAD + BODY]
    desk.loop.turn()
    assert len(desk.written) == 3, "nothing twice"


def test_a_head_of_the_turn_before_is_not_written_with_the_next_answer(desk: Desk) -> None:
    for _ in range(3):
        desk.writer.write(HEAD)
        desk.writer.write(BODY)
    desk.writer.write(HEAD)
    desk.loop.turn()
    assert b"".join(desk.written) == (HEAD + BODY) * 3 + HEAD


def test_flushing_writes_what_is_kept_and_once(desk: Desk) -> None:
    desk.writer.write(HEAD)
    desk.writer.flush()
    desk.writer.flush()
    desk.loop.turn()
    assert desk.written == [HEAD]


@pytest.mark.parametrize("end", ["abort", "close"])
def test_a_head_for_a_client_that_has_left_is_dropped(end: str) -> None:
    """Where the end of the connection comes between a head and the next turn."""
    faults: list[dict[str, Any]] = []

    async def write_behind_the_end() -> None:
        loop, (ours, theirs) = asyncio.get_running_loop(), socket.socketpair()
        loop.set_exception_handler(lambda _, fault: faults.append(fault))
        transport, _ = await loop.create_connection(asyncio.Protocol, sock=ours)
        getattr(transport, end)()
        AnswerWriter(transport, loop.call_soon).write(HEAD)
        await asyncio.sleep(0.01)
        assert theirs.recv(1) == b""
        theirs.close()

    uvloop.run(write_behind_the_end())
    assert faults == []


async def answer_in_parts(scope: Scope, receive: Receive, send: Send) -> None:
    """Say what the path names, and stop there for as many turns as the query says."""
    status = {"/nothing": 204, "/error": 503}.get(scope["path"], 200)
    headers = [] if status == 204 else [(b"content-length", b"4")]
    if scope["path"] == "/close":
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    for _ in range(int(scope["query_string"] or 0)):
        await asyncio.sleep(0)
    body = b"" if status == 204 else BODY
    await send({"type": "http.response.body", "body": body})


@pytest.mark.parametrize("turns", [0, 1, 3])
@pytest.mark.parametrize(
    ("method", "path", "status", "body"),
    [
        ("GET", "/", b"200 OK", BODY),
        ("HEAD", "/", b"200 OK", b""),
        ("POST", "/nothing", b"204 No Content", b""),
        ("POST", "/error", b"503 Service Unavailable", BODY),
        ("POST", "/close", b"200 OK", BODY),
        ("HEAD", "/close", b"200 OK", b""),
    ],
)
def test_an_answer_of_any_form_arrives_whole(
    turns: int, method: str, path: str, status: bytes, body: bytes
) -> None:
    last = ask(f"{path}?{turns}", b"", "Connection: close", method=method)
    before = b"" if path == "/close" else ask(f"{path}?{turns}", method=method)
    with serve(answer_in_parts) as server, server.connect() as client:
        client.sendall(before + last)
        came = read_to_end(client)
    answers = came.split(b"HTTP/1.1 ")[1:]
    assert len(answers) == (2 if before else 1)
    for answer in answers:
        head, _, text = answer.partition(b"\r\n\r\n")
        assert head.startswith(status + b"\r\n")
        assert text == body


def test_a_refusal_behind_an_answer_is_written() -> None:
    with serve(answer_in_parts) as server, server.connect() as client:
        client.sendall(ask("/"))
        assert read_answer(client)[::2] == (200, BODY)
        client.sendall(b"garbage\r\n\r\n")
        assert read_to_end(client).startswith(b"HTTP/1.1 400 Bad Request\r\n")
