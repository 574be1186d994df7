"""The wait for room for an answer: a part of the time that a request may wait."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace

from service.errors import UnavailableError
from service.inference import Schedule


async def wait_for_room(
    hold: Callable[[int], Awaitable[None]], size_bytes: int, schedule: Schedule
) -> Schedule:
    """Hold the bytes of an answer, within the time that its request may wait.

    Args:
        hold: waits for room.
        size_bytes: of the answer.
        schedule: how the request wants to wait.

    Returns:
        how it may wait for a thread: less long, where it has waited for room.

    Raises:
        UnavailableError: if there is no room in time.
    """
    timeout_us = schedule.timeout_us
    if not timeout_us:
        await hold(size_bytes)
        return schedule
    since_ns = time.perf_counter_ns()
    try:
        async with asyncio.timeout(timeout_us / 1e6) as timer:
            await hold(size_bytes)
    except TimeoutError:
        if not timer.expired():
            raise
        raise UnavailableError(
            f"the request waited for room for its answer longer than the {timeout_us} microseconds "
            "that its parameter 'timeout' allows; raise it, or try again later"
        ) from None
    # Whole milliseconds, as event loops count: where there is room, holding takes microseconds.
    waited_us = (time.perf_counter_ns() - since_ns) // 1_000_000 * 1000
    return replace(schedule, timeout_us=max(1, timeout_us - waited_us))  # 0 would be no end
