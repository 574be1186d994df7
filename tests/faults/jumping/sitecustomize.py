"""Python loads this before a server whose clock is set while it runs.

The clock is that of the machine, and as many seconds as a file holds, which may be negative.
"""

import os
import time
from collections.abc import Callable
from pathlib import Path


def install(path: str) -> None:
    """Let Python's clock of the day follow a file."""
    now_s, now_ns = time.time, time.time_ns

    def read_offset_s() -> int:
        try:
            return int(Path(path).read_text() or 0)
        except FileNotFoundError:
            return 0

    def jump(clock: Callable[[], float], unit: int) -> Callable[[], float]:
        return lambda: clock() + unit * read_offset_s()

    for name, clock, unit in (("time", now_s, 1), ("time_ns", now_ns, 10**9)):
        setattr(time, name, jump(clock, unit))


if path := os.environ.get("LIMELIGHT_TEST_CLOCK"):
    install(path)
