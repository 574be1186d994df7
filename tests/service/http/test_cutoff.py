"""A request that is cut off by the end of the server gets an answer that clients can read."""

import asyncio
from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send

from service.http.cutoff import Cutoff

SCOPE = {"type": "http"}


async def cut_off(app: Any, scope: Scope) -> list[Message]:
    """What is sent when the task of a request is cancelled once it waits."""
    sent: list[Message] = []
    waiting = asyncio.Event()

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        waiting.set()
        await asyncio.Event().wait()
        raise AssertionError

    task = asyncio.create_task(Cutoff(app)(scope, receive, send))
    await waiting.wait()
    task.cancel()
    try:
        await task
    finally:
        assert all(message["type"].startswith("http.response") for message in sent)
    return sent


async def wait(_: Scope, receive: Receive, __: Send) -> None:
    await receive()


async def test_it_is_answered_with_503_and_when_to_try_again() -> None:
    start, body = await cut_off(wait, SCOPE)
    assert start["status"] == 503
    assert (b"retry-after", b"1") in start["headers"]
    assert (b"content-type", b"application/json") in start["headers"]
    assert body["body"] == b'{"error":"the server stopped before the request was answered"}'


async def test_an_answer_that_has_begun_is_not_begun_again() -> None:
    async def begin(_: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await receive()

    with pytest.raises(asyncio.CancelledError):
        await cut_off(begin, SCOPE)


async def test_the_end_of_the_application_itself_is_no_request() -> None:
    with pytest.raises(asyncio.CancelledError):
        await cut_off(wait, {"type": "lifespan"})
