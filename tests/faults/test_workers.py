"""Faults of several workers: one that dies, one that cannot start, a supervisor that is gone."""

import os
import re
import shutil
import signal
import socket
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import httpx
import pytest

from benchmarks.endurance.traffic import ask_once, draw, render_infer
from benchmarks.endurance.workers import Client, count_ready, find_workers, start
from tests.faults.process_facts import needs_linux
from tests.faults.test_shutdown import begin, finish, wait_until_refused
from tests.integration.server_process import (
    COMMAND,
    ROOT,
    ServerProcess,
    make_environment,
    run_command,
    start_server,
    wait_for_banner,
)

pytestmark = [
    needs_linux,
    pytest.mark.skipif("LIMELIGHT_TEST_URL" in os.environ, reason="a deployed server is tested"),
]
WORKERS: Final = 2
CLIENTS: Final = 4
LENGTH: Final = 5
D_MODEL: Final = 6  # of the demo
PATIENCE_S: Final = 60
PAUSE_S: Final = 0.02
DOOR: Final = "v2-binary"
DEMO: Final = ROOT / "service" / "demo" / "demo"
TWO_WORKERS: Final = ("--workers", str(WORKERS))


def wait_until(is_so: Callable[[], bool]) -> None:
    """Look again and again."""
    deadline_s = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline_s, "it took too long"
        time.sleep(PAUSE_S)


def find(server: ServerProcess) -> list[int]:
    """The processes of the workers."""
    return find_workers(server.process.pid)


def is_whole(server: ServerProcess, *gone: int) -> bool:
    """Whether there are as many workers as there should be, and all ready, without some."""
    found = find(server)
    return len(found) == WORKERS == count_ready(server.url) and not {*gone} & {*found}


@contextmanager
def launch(folder: Path, **settings: str) -> Iterator[ServerProcess]:
    """Two workers that may end in any way, and the supervisor at the head of their group."""
    log_file = folder / "log"
    with (
        log_file.open("wb") as log,
        subprocess.Popen(
            [*COMMAND, *TWO_WORKERS],
            cwd=ROOT,
            env=make_environment({"LIMELIGHT_PORT": "0"} | settings),
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,
        ) as process,
    ):
        try:
            yield wait_for_banner(process, log_file)
        finally:
            process.kill()


@contextmanager
def ask_on(server: ServerProcess) -> Iterator[Counter[str]]:
    """Ask on some connections during a block; what became of it is there after the block."""
    request = render_infer(server.url, "demo", draw(0, 1, LENGTH, D_MODEL))
    _, right = ask_once(server.url, request)
    clients, counts = [Client(server.url, request, right) for _ in range(CLIENTS)], Counter[str]()
    with ExitStack() as asking:
        start(clients, asking)
        yield counts
    for client in clients:
        counts.update(client.counts)


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGTERM, signal.SIGABRT])
def test_a_worker_that_ends_costs_no_request_and_gets_a_successor(sent: signal.Signals) -> None:
    with start_server(*TWO_WORKERS) as server:
        with ask_on(server) as counts:
            for _ in range(2):
                victim = find(server)[0]
                os.kill(victim, sent)
                wait_until(partial(is_whole, server, victim))
        assert counts["failed"] == 0
        assert counts["answered"] > CLIENTS
        code = 0 if sent == signal.SIGTERM else -sent
        line = rf"worker {victim} ended with exit code {code}; another takes its place"
        assert line in server.log_file.read_text()


def test_what_workers_had_counted_that_are_gone_stays_counted() -> None:
    series = re.compile(
        r'^nv_inference_request_success{model="demo",version="1"} (\d+)$', re.MULTILINE
    )

    def read(server: ServerProcess) -> int:
        found = series.search(httpx.get(f"{server.url}/metrics").text)
        assert found
        return int(found[1])

    with start_server(*TWO_WORKERS) as server:
        with ask_on(server) as counts:
            time.sleep(PAUSE_S)
        before = read(server)
        assert before == 1 + counts["answered"]
        for worker in find(server):
            os.kill(worker, signal.SIGKILL)
            wait_until(partial(is_whole, server, worker))
        assert read(server) == before


def test_a_restart_replaces_every_worker_and_no_request_fails() -> None:
    with start_server(*TWO_WORKERS) as server:
        old = find(server)
        with ask_on(server) as counts:
            server.process.send_signal(signal.SIGHUP)
            wait_until(lambda: is_whole(server, *old))
        assert counts["failed"] == counts["again"] == 0
        assert counts["answered"] > CLIENTS


def test_workers_that_cannot_be_replaced_serve_on(tmp_path: Path) -> None:
    shutil.copytree(DEMO, tmp_path / "demo")
    with start_server(*TWO_WORKERS, LIMELIGHT_MODELS=str(tmp_path)) as server:
        old = find(server)
        shutil.rmtree(tmp_path / "demo")
        server.process.send_signal(signal.SIGHUP)
        text = "the workers are not replaced, as a new one cannot start: LIMELIGHT_MODELS is "
        wait_until(lambda: text in server.log_file.read_text())
        assert find(server) == old
        assert count_ready(server.url) == WORKERS


def test_a_start_that_fails_says_the_same_as_that_of_one_process(tmp_path: Path) -> None:
    (tmp_path / "demo").mkdir()
    (tmp_path / "keys").write_text("nobody")
    for arguments in (
        ("--models", str(tmp_path)),
        ("--api-keys-file", str(tmp_path / "keys")),
    ):
        one, two = run_command(*arguments), run_command(*arguments, *TWO_WORKERS)
        assert two.returncode == one.returncode == 1
        assert two.stdout == one.stdout == ""
        assert two.stderr == one.stderr
        assert one.stderr.startswith("limelight-serve: ")
        assert one.stderr.count("\n") == 1


def test_a_worker_that_cannot_be_replaced_ends_the_server(tmp_path: Path) -> None:
    """As a server of one process that starts anew: whoever runs it learns of it."""
    shutil.copytree(DEMO, tmp_path / "demo")
    with launch(tmp_path, LIMELIGHT_MODELS=str(tmp_path)) as server:
        shutil.rmtree(tmp_path / "demo")
        os.kill(find(server)[0], signal.SIGKILL)
        assert server.process.wait(PATIENCE_S) == 1
        assert server.log_file.read_text().splitlines()[-1].startswith("limelight-serve: LIMELIGHT")


def test_without_a_supervisor_the_workers_end_and_the_port_is_free(tmp_path: Path) -> None:
    with launch(tmp_path) as server:
        workers, address = find(server), urlsplit(server.url)
        server.process.kill()
        wait_until(lambda: not any(is_running(worker) for worker in workers))
        with socket.create_server((str(address.hostname), address.port or 0)):
            pass


def is_running(pid: int) -> bool:
    """Whether a process has not ended, whoever has to be told so; proc(5), stat."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return text.rpartition(")")[2].split()[0] != "Z"


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_the_whole_group_cuts_nobody(tmp_path: Path, sent: signal.Signals) -> None:
    """A terminal sends SIGINT to all processes, systemd SIGTERM."""
    with launch(tmp_path) as server, ExitStack() as stack:
        connections = [stack.enter_context(begin(server, DOOR)) for _ in range(CLIENTS)]
        os.killpg(server.process.pid, sent)
        wait_until_refused(server)
        for connection in connections:
            assert finish(connection, DOOR).status_code == 200
        assert server.process.wait(PATIENCE_S) == 0
