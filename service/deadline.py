"""The time that a request may take in all."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from service.errors import UnavailableError

SETTING: Final = "LIMELIGHT_REQUEST_TIMEOUT_MS"


@asynccontextmanager
async def limit_time(timeout_ms: int) -> AsyncIterator[None]:
    """Cancel the block if it takes longer.

    What a thread computes for it by then goes on to its end, or to that of its slice, and is
    dropped.

    Args:
        timeout_ms: no end where 0.

    Raises:
        UnavailableError: naming the setting.
    """
    try:
        async with asyncio.timeout(timeout_ms / 1000 if timeout_ms else None) as timer:
            yield
    except TimeoutError:
        if not timer.expired():
            raise
        raise too_long(timeout_ms) from None


def too_long(timeout_ms: int) -> UnavailableError:
    """The error of a request that took longer than it may."""
    return UnavailableError(
        f"the request took longer than {timeout_ms} ms ({SETTING}); send less at once, or try "
        "again when the server is less busy"
    )
