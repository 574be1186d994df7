"""Work ends when the client leaves, and not before."""

import asyncio
from typing import Any

import pytest
from starlette.requests import Request
from starlette.types import Message

from service.departure import work_while_present
from service.errors import ClientLeftError


def make_request(leaves: asyncio.Event) -> Request:
    async def receive() -> Message:
        await leaves.wait()
        return {"type": "http.disconnect"}

    return Request({"type": "http", "headers": []}, receive)


async def test_work_for_a_client_that_stays_is_done() -> None:
    async def work() -> str:
        return "answer"

    assert await work_while_present(make_request(asyncio.Event()), work()) == "answer"


async def test_an_error_of_the_work_is_passed_on() -> None:
    async def work() -> Any:
        raise ValueError("broken")

    with pytest.raises(ValueError, match=r"^broken$"):
        await work_while_present(make_request(asyncio.Event()), work())


async def test_work_for_a_client_that_leaves_is_cancelled() -> None:
    leaves, was_cancelled = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        leaves.set()
        try:
            await asyncio.Event().wait()
        finally:
            was_cancelled.set()

    with pytest.raises(ClientLeftError, match=r"^the client left before its answer was ready$"):
        await work_while_present(make_request(leaves), work())
    await asyncio.wait_for(was_cancelled.wait(), 10)


async def test_work_is_cancelled_with_the_request_itself() -> None:
    has_begun, was_cancelled = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        has_begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            was_cancelled.set()

    task = asyncio.create_task(work_while_present(make_request(asyncio.Event()), work()))
    await has_begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.wait_for(was_cancelled.wait(), 10)
