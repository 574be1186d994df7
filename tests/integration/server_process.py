"""`limelight-serve` as a process: started on a free port, watched, and told to stop."""

import os
import queue
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

ROOT: Final = Path(__file__).parents[2]
START_TIMEOUT_S: Final = 60
STOP_TIMEOUT_S: Final = 30
LOG_TAIL_BYTES: Final = 8192
PAGE_LINE: Final = re.compile(r"^  page +(http://\S+)/$")
LAST_LINE: Final = "  try "
COMMAND: Final = (sys.executable, "-m", "service")


@dataclass(frozen=True)
class ServerProcess:
    """A server that runs.

    Attributes:
        process: of the server.
        url: its address, as the banner says it.
        banner: the lines of its first screen.
        log_file: what it wrote to its standard error.
    """

    process: subprocess.Popen[str]
    url: str
    banner: list[str]
    log_file: Path

    def read_log(self) -> str:
        """The last of what the server logged."""
        return self.log_file.read_bytes()[-LOG_TAIL_BYTES:].decode(errors="replace")

    def stop(self) -> int:
        """Send SIGTERM, unless the process has ended, and return the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(STOP_TIMEOUT_S)


def make_environment(settings: Mapping[str, str]) -> dict[str, str]:
    """This process' environment with `settings` and no other variable of ours."""
    others = {name: text for name, text in os.environ.items() if not name.startswith("LIMELIGHT_")}
    return others | dict(settings)


def run_line(line: str) -> bytes:
    """What a line prints that is typed into a shell."""
    shell = ["/bin/sh", "-c", line]
    return subprocess.run(shell, check=True, capture_output=True, timeout=STOP_TIMEOUT_S).stdout


def run_command(
    *arguments: str, timeout_s: float = START_TIMEOUT_S, **settings: str
) -> subprocess.CompletedProcess[str]:
    """Run `limelight-serve` where it is expected to end by itself."""
    return subprocess.run(
        [*COMMAND, *arguments],
        cwd=ROOT,
        env=make_environment(settings),
        check=False,
        capture_output=True,
        text=True,
        timeout=timeout_s,
    )


@contextmanager
def launch(
    *arguments: str,
    screen: int = subprocess.DEVNULL,
    log: IO[bytes] | int = subprocess.DEVNULL,
    **settings: str,
) -> Iterator[subprocess.Popen[str]]:
    """The bare process; killed at the end if it still runs."""
    process = subprocess.Popen(
        [*COMMAND, *arguments],
        cwd=ROOT,
        env=make_environment(settings),
        stdout=screen,
        stderr=log,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@contextmanager
def start_server(
    *arguments: str, while_starting: Callable[[], None] | None = None, **settings: str
) -> Iterator[ServerProcess]:
    """A server on a free port of 127.0.0.1; it is stopped, and must then exit with 0.

    Args:
        *arguments: of `limelight-serve`.
        while_starting: called once the port of `settings` takes connections.
        **settings: variables of its environment.
    """
    with tempfile.TemporaryDirectory() as folder:
        log_file = Path(folder) / "log"
        settings = {"LIMELIGHT_PORT": "0"} | settings
        with (
            log_file.open("wb") as log,
            launch(*arguments, screen=subprocess.PIPE, log=log, **settings) as process,
        ):
            if while_starting:
                wait_for_port(process, int(settings["LIMELIGHT_PORT"]))
                while_starting()
            server = wait_for_banner(process, log_file)
            yield server
            code = server.stop()
            assert code == 0, f"exit code {code}; log:\n{server.read_log()}"


def wait_for_banner(process: subprocess.Popen[str], log_file: Path) -> ServerProcess:
    """Read the first screen up to its last line, within `START_TIMEOUT_S`."""
    assert process.stdout
    lines: queue.Queue[str | None] = queue.Queue()
    threading.Thread(target=pass_lines, args=(process.stdout, lines), daemon=True).start()
    deadline = time.monotonic() + START_TIMEOUT_S
    banner: list[str] = []
    while not banner or not banner[-1].startswith(LAST_LINE):
        try:
            line = lines.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            line = None
        if line is None:
            process.kill()
            raise AssertionError(f"the server did not start; its log:\n{log_file.read_text()}")
        banner.append(line.rstrip("\n"))
    urls = [match[1] for match in map(PAGE_LINE.match, banner) if match]
    assert urls, f"the banner names no page: {banner}"
    return ServerProcess(process, urls[0], banner, log_file)


def find_free_port() -> int:
    """A port of 127.0.0.1 that was free a moment ago."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def wait_for_port(process: subprocess.Popen[str], port: int) -> None:
    """Knock until somebody listens, within `START_TIMEOUT_S`."""
    deadline = time.monotonic() + START_TIMEOUT_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), START_TIMEOUT_S).close()
        except ConnectionRefusedError:
            assert process.poll() is None, "the server ended while starting"
            assert time.monotonic() < deadline, "nobody listens"
        else:
            return


def pass_lines(stream: IO[str], lines: queue.Queue[str | None]) -> None:
    """Put every line of `stream` into `lines`, then None."""
    with stream:
        for line in stream:
            lines.put(line)
    lines.put(None)
