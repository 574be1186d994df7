"""The product as a user starts it: `limelight-serve` on a free port, and what it costs."""

import os
import subprocess
import sys
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx

KIB: Final = 1024
TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")
START_TIMEOUT_S: Final = 60
POLL_S: Final = 0.005


@dataclass(frozen=True)
class ServerUnderTest:
    """A server that runs.

    Attributes:
        process: of the server.
        url: its address.
        cold_start_s: from the command to ready.
    """

    process: subprocess.Popen[str]
    url: str
    cold_start_s: float

    @property
    def cpu_s(self) -> float:
        """Processor time since its start, user and system; proc(5), fields 14 and 15 of stat."""
        text = Path(f"/proc/{self.process.pid}/stat").read_text()
        fields = text.rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS_PER_S

    def read_memory(self, name: str) -> int:
        """Bytes of `Rss`, or of `Pss`: what is shared is divided by its users."""
        return read_memory(self.process.pid, name)

    def count_files(self) -> int:
        """Descriptors that are open, those of connections among them; proc(5), fd."""
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))

    def forget_peak(self) -> None:
        """Count the peak from now on; proc(5), clear_refs."""
        Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")

    def read_peak(self) -> int:
        """Most bytes that were resident at once; proc(5), VmHWM of status."""
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * KIB
        raise RuntimeError("no VmHWM in status")


def read_memory(pid: int, name: str) -> int:
    """Bytes of `Rss` or `Pss` of a process; proc(5), smaps_rollup."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        label, _, rest = line.partition(":")
        if label == name:
            return int(rest.split()[0]) * KIB
    raise RuntimeError(f"no {name} in smaps_rollup")


@contextmanager
def serve(
    models: Path | None = None, cores: Collection[int] = (), **settings: str
) -> Iterator[ServerUnderTest]:
    """Start a server that must live until it is stopped; the arguments are those of `start`.

    Raises:
        RuntimeError: if it does not start, or dies meanwhile.
    """
    with start(models, cores, **settings) as server:
        yield server
        if server.process.poll() is not None:
            raise RuntimeError("the server died during the benchmark")


@contextmanager
def start(
    models: Path | None = None, cores: Collection[int] = (), **settings: str
) -> Iterator[ServerUnderTest]:
    """Start a server, and stop it unless it has ended.

    Args:
        models: the repository; the embedded demo where absent.
        cores: that the process may use; all where empty.
        **settings: variables of its environment.

    Raises:
        RuntimeError: if it does not start.
    """
    started_s = time.perf_counter()
    with use_cores(cores):
        process = subprocess.Popen(
            command_of(models),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=os.environ | settings,
        )
    try:
        url = read_address(process)
        yield ServerUnderTest(process, url, wait_until_ready(url, started_s))
    finally:
        process.terminate()
        process.communicate()  # which waits, and closes the pipe


@contextmanager
def use_cores(cores: Collection[int]) -> Iterator[None]:
    """Give this thread, and so the processes that it starts, some cores alone; all where empty."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores or before)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def command_of(models: Path | None) -> list[str]:
    """The command that serves a repository, or the embedded demo, on a free port."""
    command = [sys.executable, "-m", "service", "--port", "0"]
    return command + (["--models", str(models)] if models else [])


def read_address(process: subprocess.Popen[str]) -> str:
    """The address in the server's first screen.

    Raises:
        RuntimeError: if it ends without one.
    """
    for line in process.stdout or ():
        label, _, rest = line.strip().partition(" ")
        if label == "page":
            return rest.strip().removesuffix("/")
    raise RuntimeError("the server did not start")


def wait_until_ready(url: str, started_s: float) -> float:
    """Seconds since `started_s` until the server says that it is ready.

    Raises:
        RuntimeError: if it does not within `START_TIMEOUT_S`.
    """
    while time.perf_counter() < started_s + START_TIMEOUT_S:
        if httpx.get(f"{url}/v2/health/ready").status_code == httpx.codes.OK:
            return time.perf_counter() - started_s
        time.sleep(POLL_S)
    raise RuntimeError("the server did not get ready")
