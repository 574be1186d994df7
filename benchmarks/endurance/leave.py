"""Clients that leave before they have their answer, at every stage."""

import select
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final
from urllib.parse import urlsplit

from benchmarks.endurance.figure import Figure
from benchmarks.endurance.readings import (
    count_runs,
    count_settled_files,
    count_waiting,
    read_metric,
    wait_until,
)
from benchmarks.endurance.stage import Stage
from benchmarks.endurance.traffic import ask_once, draw, render_infer
from benchmarks.server import ServerUnderTest, serve

MODEL: Final = "left"
D_MODEL: Final = 8  # long sequences of narrow tokens: much to compute, little to send
WAVE: Final = 100
BLOCKERS: Final = 3
TRIES: Final = 5
SHORT, LONG, LONGEST = 8, 1024, 4096
MOST_S: Final = 1.0
TIMEOUT_S: Final = 60
SETTINGS: Final = {
    "LIMELIGHT_INFERENCE_THREADS": "1",
    "LIMELIGHT_MAX_QUEUE_REQUESTS": str(2 * WAVE),
    "LIMELIGHT_LOG_LEVEL": "warning",
}


class Visitors:
    """Clients that leave one server.

    Args:
        server: that they ask.
        count: of them at each stage, in waves.
    """

    def __init__(self, server: ServerUnderTest, count: int) -> None:
        self.server = server
        self.count = count
        self._sizes = [min(WAVE, count - begun) for begun in range(0, count, WAVE)]

    def connect(self, request: bytes) -> socket.socket:
        """A connection on which a request, or a part of one, was sent."""
        parts = urlsplit(self.server.url)
        connection = socket.create_connection((parts.hostname or "", parts.port or 80), TIMEOUT_S)
        connection.sendall(request)
        return connection

    @contextmanager
    def open(self, request: bytes, count: int) -> Iterator[list[socket.socket]]:
        """Several of them, closed at the end of the block."""
        with ExitStack() as opened:
            yield [opened.enter_context(self.connect(request)) for _ in range(count)]

    def leave_while_sending(self, part: bytes) -> float:
        """Send a part of a request, and leave.

        Returns:
            Seconds until the server held none of them any more, at most.
        """
        slowest_s = 0.0
        for size in self._sizes:
            files = count_settled_files(self.server)
            with self.open(part, size):
                wait_until(partial(self._holds, files + size), TIMEOUT_S)
            slowest_s = max(slowest_s, self._wait_for_silence(files, 0))
        return slowest_s

    def leave_while_queued(self, request: bytes, blocker: bytes) -> "Queued":
        """Wait behind others that take long, and leave."""
        waves = [self._leave_queue(size, request, blocker) for size in self._sizes]
        return Queued(
            max(wave.slowest_s for wave in waves),
            sum(wave.computed for wave in waves),
            sum(wave.counted for wave in waves),
        )

    def _leave_queue(self, size: int, request: bytes, blocker: bytes) -> "Queued":
        """One wave, behind ever more others until they outlast it.

        Raises:
            RuntimeError: if they never do.
        """
        for tries in range(TRIES):
            wave = self._try_queue(size, request, blocker, BLOCKERS * 2**tries)
            if wave is not None:
                return wave
        raise RuntimeError(f"{BLOCKERS * 2**tries} requests that take long ended too soon")

    def _try_queue(
        self, size: int, request: bytes, blocker: bytes, blockers: int
    ) -> "Queued | None":
        """One wave; nothing where the queue had an end before the clients left."""
        runs, counted = count_runs(self.server.url), self.count_departures()
        with self.open(blocker, blockers) as blocking:
            self._wait_for_queue(blockers - 1)
            files = count_settled_files(self.server)
            with self.open(request, size):
                self._wait_for_queue(size)
            slowest_s = self._wait_for_silence(files, blockers - 1)
            is_answered = bool(select.select(blocking[-1:], (), (), 0)[0])
            for each in blocking:
                each.recv(1)
        self._wait_for_silence(files - blockers, 0)
        computed = count_runs(self.server.url) - runs - blockers
        counted = self.count_departures() - counted
        return None if is_answered else Queued(slowest_s, computed, counted)

    def count_departures(self) -> float:
        """Departures that the server has counted so far."""
        return read_metric(self.server.url, "limelight_departures_total")

    def leave_one_by_one(self, request: bytes, take: Callable[[socket.socket], None]) -> float:
        """Send a request, take something of it, and leave; as `leave_while_sending`."""
        slowest_s = 0.0
        for size in self._sizes:
            files = count_settled_files(self.server)
            for _ in range(size):
                with self.connect(request) as connection:
                    take(connection)
            slowest_s = max(slowest_s, self._wait_for_silence(files, 0))
        return slowest_s

    def _holds(self, files: int) -> bool:
        return self.server.count_files() >= files

    def _wait_for_queue(self, count: int) -> None:
        wait_until(lambda: count_waiting(self.server.url) >= count, TIMEOUT_S)

    def _wait_for_silence(self, files: int, waiting: int) -> float:
        def is_silent() -> bool:
            # The files first: reading a metric opens a connection.
            return self.server.count_files() <= files and count_waiting(self.server.url) <= waiting

        return wait_until(is_silent, TIMEOUT_S)


@dataclass(frozen=True)
class Queued:
    """What became of clients that left while they were queued.

    Attributes:
        slowest_s: until the server held none of a wave any more, at most.
        computed: runs that were theirs.
        counted: departures that the server counted.
    """

    slowest_s: float
    computed: float
    counted: float


def leave(stage: Stage) -> list[Figure]:
    """Nothing may be held for them a second later, and what waited must not be computed."""
    models = stage.make_repository()
    stage.place(models, MODEL, "1", D_MODEL, 1)
    with serve(models, (), **SETTINGS) as server:
        visitors = Visitors(server, stage.size(600, 20))
        short, long, longest = (
            render_infer(server.url, MODEL, draw(0, 1, length, D_MODEL))
            for length in (SHORT, LONG, LONGEST)
        )
        slowest_s = {
            "in the head": visitors.leave_while_sending(short[:20]),
            "in the body": visitors.leave_while_sending(long[: len(long) // 2]),
        }
        # All of these leave before their answer can be there; those below may have it already.
        counted_early = visitors.count_departures()
        queued = visitors.leave_while_queued(short, longest)
        slowest_s |= {"in the queue": queued.slowest_s} | leave_late(visitors, long)
        left = visitors.count_departures()
        held_bytes = read_metric(server.url, "limelight_held_bytes")
        status, _ = ask_once(server.url, short)
    early = (counted_early + queued.counted) / (3 * visitors.count)
    return [
        Figure("clients that left", visitors.count * len(slowest_s)),
        *(
            Figure(f"until they are forgotten, {at}", s, "s", most=MOST_S)
            for at, s in slowest_s.items()
        ),
        Figure(
            "of those in the queue, computed", queued.computed / visitors.count * 100, "%", most=1
        ),
        Figure(
            "departures counted, of those in head, body and queue",
            early * 100,
            "%",
            least=100,
            most=100,
        ),
        Figure("departures counted, of all stages", left),
        Figure("bytes that it holds for requests afterwards", held_bytes, most=0),
        Figure("status of a request afterwards", status, least=200, most=200),
    ]


def leave_late(visitors: Visitors, request: bytes) -> dict[str, float]:
    """Leave while the model runs, and while the answer comes; seconds as above, by stage."""
    compute_s = time_answer(visitors.server.url, request)

    def take_half_the_time(_: socket.socket) -> None:
        time.sleep(compute_s / 2)

    def take_a_part(connection: socket.socket) -> None:
        connection.recv(SHORT)

    heavy = render_infer(
        visitors.server.url, MODEL, draw(0, 1, LONG, D_MODEL), outputs=["attention_weights"]
    )
    return {
        "while computed": visitors.leave_one_by_one(request, take_half_the_time),
        "within the answer": visitors.leave_one_by_one(heavy, take_a_part),
    }


def time_answer(url: str, request: bytes) -> float:
    """Seconds of the second of two requests, one after the other."""
    ask_once(url, request)
    started_s = time.perf_counter()
    ask_once(url, request)
    return time.perf_counter() - started_s
