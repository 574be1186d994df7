"""What the benchmarks tell whoever runs them."""

import sys
from collections.abc import Collection
from typing import NoReturn


def say(line: str) -> None:
    """Write one line, at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def finish(missed: Collection[str]) -> NoReturn:
    """Name the figures that were missed, and end the process: with 1 where there are any."""
    for line in missed:
        say(f"missed: {line}")
    sys.exit(bool(missed))
