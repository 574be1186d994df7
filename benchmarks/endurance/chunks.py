"""Bodies that come in as many chunks as they have bytes."""

import socket
import statistics
import threading
import time
from typing import Final
from urllib.parse import urlsplit

import httpx

from benchmarks.endurance.figure import Figure
from benchmarks.endurance.stage import Stage
from benchmarks.server import ServerUnderTest, serve

MIB: Final = 2**20
TIMEOUT_S: Final = 60
PAUSE_S: Final = 0.005
WARMING: Final = 5
HEAD: Final = (
    b"POST /v1/attention HTTP/1.1\r\nHost: limelight\r\nContent-Type: application/json\r\n"
    b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
)
CHUNK: Final = b"1\r\n{\r\n"
END: Final = b"0\r\n\r\n"


def chunks(stage: Stage) -> list[Figure]:
    """They must be refused, cost no memory, and keep nobody waiting for long."""
    count, size = stage.size(100, 3), stage.size(1_000_000, 20_000)
    request = HEAD + CHUNK * size + END
    with serve(LIMELIGHT_LOG_LEVEL="warning") as server, Watching(server) as watching:
        for _ in range(WARMING):
            send(server.url, request)
        before_bytes = server.read_memory("Rss")
        statuses = [send(server.url, request) for _ in range(count)]
        after_bytes = server.read_memory("Rss")
    return [
        Figure("requests", count),
        Figure("chunks of one byte in each", size),
        Figure("answers other than 400", sum(status != 400 for status in statuses), most=0),
        Figure(
            "memory beyond that after five of them",
            (after_bytes - before_bytes) / MIB,
            "MiB",
            most=1,
        ),
        Figure("median time of the others meanwhile", watching.median_ms, "ms"),
    ]


def send(url: str, request: bytes) -> int:
    """Status of the answer to a request, on a connection of its own."""
    address = urlsplit(url)
    with socket.create_connection((address.hostname, address.port), TIMEOUT_S) as connection:
        connection.sendall(request)
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    return int(answer.split(maxsplit=2)[1])


class Watching:
    """Asks for the health again and again while the block runs.

    Attributes:
        median_ms: time of one answer.
    """

    median_ms = 0.0

    def __init__(self, server: ServerUnderTest) -> None:
        self._url = server.url
        self._times_s: list[float] = []
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._ask)

    def _ask(self) -> None:
        with httpx.Client(base_url=self._url, timeout=TIMEOUT_S) as client:
            while not self._stopped.wait(PAUSE_S) or not self._times_s:
                started_s = time.perf_counter()
                client.get("/v2/health/live").raise_for_status()
                self._times_s.append(time.perf_counter() - started_s)

    def __enter__(self) -> "Watching":
        """Begin."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End, and take the median."""
        self._stopped.set()
        self._thread.join()
        self.median_ms = statistics.median(self._times_s) * 1000
