"""Programs around the server, each as a process that listens."""

import ssl
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import httpx

START_TIMEOUT_S: Final = 30
STOP_TIMEOUT_S: Final = 30
WAIT_S: Final = 0.05


@contextmanager
def run_until_it_answers(
    command: Sequence[str], url: str, log_file: Path, *, certificate: Path | None = None
) -> Iterator[None]:
    """Run a program, wait for a 2xx at `url`, and end it with SIGTERM after the block.

    Args:
        command: that stays in the foreground.
        url: that answers once the program is ready.
        log_file: takes what the program says.
        certificate: to trust, where `url` has one of its own.
    """
    with log_file.open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        wait_for_answer(process, url, log_file, certificate)
        yield
    finally:
        process.terminate()
        process.wait(STOP_TIMEOUT_S)


def wait_for_answer(
    process: "subprocess.Popen[bytes]", url: str, log_file: Path, certificate: Path | None
) -> None:
    """Ask until the answer is a good one, within `START_TIMEOUT_S`."""
    trusted = ssl.create_default_context(cafile=certificate)
    deadline_s = time.monotonic() + START_TIMEOUT_S
    while True:
        assert process.poll() is None, log_file.read_text()
        assert time.monotonic() < deadline_s, log_file.read_text()
        try:
            if httpx.get(url, verify=trusted, timeout=START_TIMEOUT_S).is_success:
                return
        except httpx.TransportError:
            pass
        time.sleep(WAIT_S)
