"""Work for a client that may leave before it is done."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from starlette.requests import Request

from service.errors import ClientLeftError

Result = TypeVar("Result")


async def work_while_present(request: Request, work: Coroutine[Any, Any, Result]) -> Result:
    """Await `work`, and cancel it if the client leaves meanwhile.

    Args:
        request: its body has been read: what comes after it can only be the client's departure.
        work: what to do for it.

    Raises:
        ClientLeftError: if the client left.
    """
    task = asyncio.create_task(work)
    departure = asyncio.create_task(wait_for_departure(request))
    try:
        await asyncio.wait((task, departure), return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ClientLeftError("the client left before its answer was ready")
        return task.result()
    finally:
        for each in (task, departure):
            each.cancel()


async def wait_for_departure(request: Request) -> None:
    """Return when the client has closed its connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
