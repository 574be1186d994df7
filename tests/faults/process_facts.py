"""What Linux tells of a running process: its memory, its processor time, its threads."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

MIB: Final = 2**20
PROC: Final = Path("/proc")

needs_linux = pytest.mark.skipif(
    not (PROC / "self" / "clear_refs").exists(), reason="/proc tells of memory on Linux alone"
)


def read_status(pid: int, entry: str) -> int:
    """A number of /proc/PID/status; memory is in KiB."""
    text = (PROC / str(pid) / "status").read_text()
    found = re.search(rf"^{entry}:\s+(\d+)", text, re.MULTILINE)
    assert found, entry
    return int(found[1])


class Peak:
    """How far memory rose above what it was at the start of a block."""

    bytes = 0


@contextmanager
def measure_peak(pid: int) -> Iterator[Peak]:
    """Watch the resident memory of a process; read the result after the block."""
    (PROC / str(pid) / "clear_refs").write_text("5")  # forgets the old peak, proc(5)
    before, peak = read_status(pid, "VmRSS"), Peak()
    yield peak
    peak.bytes = (read_status(pid, "VmHWM") - before) * 1024


def count_threads(pid: int) -> int:
    """Threads of a process."""
    return read_status(pid, "Threads")


def read_cpu_ns(pid: int) -> int:
    """Processor time that all threads of a process have had; those that ended are left out."""
    files = (PROC / str(pid) / "task").glob("*/schedstat")
    return sum(int(file.read_text().split()[0]) for file in files)


@contextmanager
def confined(cores: set[int]) -> Iterator[None]:
    """Processes that this thread starts in the block run on these cores alone."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
