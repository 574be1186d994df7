"""SIGKILL of one of two workers while clients ask."""

import os
import signal
import threading
import time
from collections import Counter
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

from benchmarks.client import Connection
from benchmarks.endurance.figure import Figure
from benchmarks.endurance.readings import read_metric, wait_until
from benchmarks.endurance.stage import Stage
from benchmarks.endurance.traffic import ask_once, draw, render_infer
from benchmarks.server import ServerUnderTest, read_memory, serve

MODEL: Final = "shared"
WORKERS: Final = 2
CLIENTS: Final = 4
LENGTH: Final = 64
PAUSE_S: Final = 0.5  # between two rounds
CLOSING: Final = b"\r\nconnection: close"  # said by a worker that stops
SPAWNED: Final = b"spawn_main"  # how multiprocessing starts a worker


class Client:
    """Asks on one connection all the time, and once again on a new one where that broke.

    Attributes:
        counts: of requests that were answered, answered at the second try, and failed.
    """

    def __init__(self, url: str, request: bytes, right: bytes) -> None:
        self._url, self._request, self._right = url, request, right
        self._connection: Connection | None = None
        self.counts: Counter[str] = Counter()

    def ask_on(self, stop: threading.Event) -> None:
        """Ask until told to stop."""
        while not stop.is_set():
            if self._try():
                self.counts["answered"] += 1
            else:
                self.counts["again" if self._try() else "failed"] += 1
        self._hang_up()

    def _try(self) -> bool:
        try:
            if self._connection is None:
                self._connection = Connection(self._url, self._request)
            is_right = self._connection.ask() == self._right
            if CLOSING in self._connection.head:
                self._hang_up()
        except (OSError, RuntimeError):
            self._hang_up()
            return False
        return is_right

    def _hang_up(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None


def workers(stage: Stage) -> list[Figure]:
    """Whoever asks once again must be answered, and another worker must take the place."""
    rounds, models = stage.size(20, 2), stage.make_repository()
    stage.place(models, MODEL, "1", stage.d_model, 1)
    settings = {"LIMELIGHT_WORKERS": str(WORKERS), "LIMELIGHT_LOG_LEVEL": "error"}
    with serve(models, (), **settings) as server:
        request = render_infer(server.url, MODEL, draw(0, 1, LENGTH, stage.d_model))
        _, right = ask_once(server.url, request)
        clients = [Client(server.url, request, right) for _ in range(CLIENTS)]
        pss = read_pss(server)
        with ExitStack() as asking:
            start(clients, asking)
            times_s = [kill_one(server, number) for number in range(rounds)]
        counts = sum((client.counts for client in clients), Counter[str]())
        counted = read_metric(server.url, "nv_inference_request_success")
    return [
        Figure("workers killed", rounds),
        Figure("requests answered", counts["answered"], least=rounds * CLIENTS),
        Figure("of them at the second try", counts["again"], least=1),
        Figure("requests that failed twice", counts["failed"], most=0),
        Figure("longest time to two workers again", max(times_s), "s", most=5),
        Figure("answers counted at the end over those given", counted / counts.total(), least=0.5),
        Figure("memory of a worker (PSS)", max(pss[1:]) / 2**20, "MiB"),
        Figure("memory of the supervisor (PSS)", pss[0] / 2**20, "MiB"),
    ]


def start(clients: list[Client], asking: ExitStack) -> None:
    """Let clients ask until the end of a block."""
    stop = threading.Event()
    threads = [threading.Thread(target=client.ask_on, args=(stop,)) for client in clients]
    for thread in threads:
        thread.start()
        asking.callback(thread.join)
    asking.callback(stop.set)


def kill_one(server: ServerUnderTest, number: int) -> float:
    """Kill a worker, the older and the younger in turns; seconds until there are two again."""
    time.sleep(PAUSE_S)
    found = find_workers(server.process.pid)
    os.kill(found[number % len(found)], signal.SIGKILL)
    killed_s = time.perf_counter()
    wait_until(lambda: count_ready(server.url) < WORKERS)
    wait_until(lambda: count_ready(server.url) == WORKERS)
    return time.perf_counter() - killed_s


def count_ready(url: str) -> float:
    """Workers that are ready, by whichever is asked; none where that one was just killed."""
    with suppress(OSError, RuntimeError):
        return read_metric(url, "limelight_workers")
    return 0


def find_workers(supervisor: int) -> list[int]:
    """The processes of the workers, the oldest first; proc(5), task/[tid]/children."""
    children = Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text().split()
    return [int(child) for child in children if is_worker(child)]


def is_worker(pid: str) -> bool:
    """Whether a process is a worker that has not ended; Python's tracker of resources is none."""
    try:
        return SPAWNED in Path(f"/proc/{pid}/cmdline").read_bytes()
    except FileNotFoundError:
        return False


def read_pss(server: ServerUnderTest) -> list[int]:
    """Bytes of the supervisor, and of each worker; what is shared is divided by its users."""
    return [
        read_memory(pid, "Pss") for pid in (server.process.pid, *find_workers(server.process.pid))
    ]
