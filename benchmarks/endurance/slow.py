"""Clients that send a byte a second, beside others."""

import itertools
import socket
import statistics
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final
from urllib.parse import urlsplit

from benchmarks.endurance.crowd import Crowd, Tally, find_percentile
from benchmarks.endurance.figure import Figure
from benchmarks.endurance.stage import Stage
from benchmarks.endurance.traffic import draw, render_infer
from benchmarks.server import serve

MODEL: Final = "beside"
SLOW_CLIENTS: Final = 200
PERIOD_S: Final = 1.0
RUNS: Final = 5
RATE_PER_S: Final = 100
LENGTH: Final = 16
HEAD: Final = b"POST /v2/models/beside/infer HTTP/1.1\r\nHost: x\r\n"
BODY_BEGUN: Final = HEAD + b"Content-Length: 100000\r\n\r\n"


class SlowClient:
    """One connection that sends the next byte of a head or a body; another when it is cut."""

    def __init__(self, url: str, *, in_body: bool) -> None:
        self._parts = urlsplit(url)
        self._start = BODY_BEGUN if in_body else b""
        self._rest = itertools.repeat(b" ") if in_body else split(HEAD)
        self._in_body = in_body
        self.cuts = 0
        self.socket = self._open()

    def _open(self) -> socket.socket:
        opened = socket.create_connection((self._parts.hostname or "", self._parts.port or 80))
        opened.setblocking(False)
        opened.sendall(self._start)
        return opened

    def send_next(self) -> None:
        """Send a byte, or open another connection where the server has ended this one."""
        try:
            self.socket.send(next(self._rest))
            if self.socket.recv(4096):  # the reason for its end; that comes next
                return
        except BlockingIOError:  # nothing has come
            return
        except OSError:
            pass
        self.cuts += 1
        self.socket.close()
        self._rest = itertools.repeat(b" ") if self._in_body else split(HEAD)
        self.socket = self._open()


def split(text: bytes) -> Iterator[bytes]:
    """The bytes of a head, and then of a header that has no end."""
    return (bytes([byte]) for byte in itertools.chain(text, itertools.repeat(ord("a"))))


@contextmanager
def slow_clients(url: str, count: int) -> Iterator[list[SlowClient]]:
    """Half of them are slow in the head, half in the body."""
    clients = [SlowClient(url, in_body=number % 2 == 1) for number in range(count)]
    stop = threading.Event()

    def send_on() -> None:
        while not stop.wait(PERIOD_S):
            for client in clients:
                client.send_next()

    thread = threading.Thread(target=send_on)
    thread.start()
    try:
        yield clients
    finally:
        stop.set()
        thread.join()
        for client in clients:
            client.socket.close()


def slow(stage: Stage) -> list[Figure]:
    """The latency of the others, with the slow ones and without, in turns."""
    count, models = stage.size(SLOW_CLIENTS, 40), stage.make_repository()
    stage.place(models, MODEL, "1", stage.d_model, 1)
    tally, alone_ms, beside_ms, cuts = Tally(), list[float](), list[float](), 0
    with serve(models, LIMELIGHT_LOG_LEVEL="warning") as server:
        request = render_infer(server.url, MODEL, draw(0, 1, LENGTH, stage.d_model))
        requests = stage.size(1500, 50)

        def measure() -> float:
            """The 99th percentile in milliseconds."""
            seen = Tally()
            load = {"rate_per_s": RATE_PER_S, "most": requests}
            Crowd(server.url, [request], seen.see, **load).run()
            tally.counts.update(seen.counts)
            return find_percentile(seen.latencies_s, 99) * 1000

        measure()
        for _ in range(RUNS):
            alone_ms.append(measure())
            with slow_clients(server.url, count) as clients:
                beside_ms.append(measure())
                cuts += sum(client.cuts for client in clients)
    ratios = [beside / alone for beside, alone in zip(beside_ms, alone_ms, strict=True)]
    return [
        Figure("slow connections", count),
        Figure("of them cut by their deadline, and opened again", cuts),
        Figure("requests of the others", tally.answered, least=requests * RUNS * 2),
        Figure("requests of the others that failed", tally.failed, most=0),
        Figure("their 99th percentile alone", statistics.median(alone_ms), "ms"),
        Figure("their 99th percentile beside the slow", statistics.median(beside_ms), "ms"),
        Figure("ratio, median of five runs", statistics.median(ratios), most=2),
    ]
