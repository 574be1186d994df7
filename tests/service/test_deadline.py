"""A request takes no longer than the setting says."""

import asyncio

import pytest

from service.deadline import limit_time
from service.errors import UnavailableError


async def test_what_takes_too_long_is_cancelled_and_refused() -> None:
    was_cancelled = False

    async def work() -> None:
        nonlocal was_cancelled
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            was_cancelled = True
            raise

    with pytest.raises(UnavailableError) as caught:
        async with limit_time(20):
            await work()
    assert was_cancelled
    assert str(caught.value) == (
        "the request took longer than 20 ms (LIMELIGHT_REQUEST_TIMEOUT_MS); send less at once, or "
        "try again when the server is less busy"
    )


async def test_without_a_limit_nothing_is_cancelled() -> None:
    async with limit_time(0):
        await asyncio.sleep(0.03)


async def test_the_timeout_of_something_else_stays_what_it_is() -> None:
    with pytest.raises(TimeoutError, match=r"^of the work$"):
        async with limit_time(60_000):
            raise TimeoutError("of the work")
