"""A request that Serve cancels is one whose client left."""

import asyncio
from typing import Any

import pytest
from starlette.types import Receive, Scope, Send

from deploy.ray.departure import Departures
from service.errors import ClientLeftError
from service.http.departure import Stage, get_presence


async def answer_nothing(**_: Any) -> None:
    """Neither receive nor send is called."""


async def test_a_cancelled_request_ends_as_one_whose_client_left() -> None:
    begun, stages, ends = asyncio.Event(), list[Stage](), list[str]()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            with get_presence(scope) as presence:
                presence.stage = "encode"
                begun.set()
                await asyncio.Event().wait()
        except ClientLeftError as error:
            ends.append(str(error))

    layer: Any = Departures(app, stages.append)
    request = asyncio.create_task(layer({"type": "http"}, answer_nothing, answer_nothing))
    await begun.wait()
    request.cancel()
    await request
    assert ends == ["the client left before its answer was ready"]
    assert stages == ["encode"]


async def test_another_fault_is_no_departure() -> None:
    stages = list[Stage]()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        with get_presence(scope):
            raise ValueError("a fault")

    layer: Any = Departures(app, stages.append)
    with pytest.raises(ValueError, match="a fault"):
        await layer({"type": "http"}, answer_nothing, answer_nothing)
    assert stages == []
