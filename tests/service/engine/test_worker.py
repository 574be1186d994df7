"""One thread: it runs what it is handed, once, and keeps nothing of it."""

import queue
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from service.engine.job import Job
from service.engine.worker import Worker
from tests.service.engine.work import PATIENCE_S, Piece, make_job, make_lane

Jobs = list[Job[Piece, Any]]


@pytest.fixture
def seen() -> "queue.Queue[tuple[str, str, list[int]]]":
    return queue.Queue()


@pytest.fixture
def worker(seen: "queue.Queue[tuple[str, str, list[int]]]") -> Iterator[Worker]:
    """A worker that notes what it does; its thread ends with the test."""

    def note(word: str) -> Callable[..., None]:
        def append(*arguments: Any) -> None:
            thread = threading.current_thread().name
            seen.put((word, thread, [job.number for job in arguments[-1]]))

        return append

    worker = Worker("inference-7", note("run"), note("finish"))
    worker.start()
    yield worker
    worker.hand([])
    worker.join()


def test_it_runs_what_it_is_handed_on_its_own_thread_and_says_so(
    worker: Worker, seen: "queue.Queue[Any]"
) -> None:
    lane = make_lane()
    for numbers in ([1, 2], [3]):
        worker.hand([make_job(lane, number) for number in numbers])
        assert seen.get(timeout=PATIENCE_S) == ("run", "inference-7", numbers)
        assert seen.get(timeout=PATIENCE_S) == ("finish", "inference-7", numbers)


def test_it_is_busy_from_the_begin_of_a_run_to_its_end() -> None:
    seen: list[int | None] = []
    ended = threading.Event()

    def finish(*_: Any) -> None:
        seen.append(busy.busy_since_ns)
        ended.set()

    busy = Worker("inference-5", lambda _: seen.append(busy.busy_since_ns), finish)
    assert (busy.name, busy.busy_since_ns) == ("inference-5", None)
    busy.start()
    before_ns = time.perf_counter_ns()
    busy.hand([make_job(make_lane(), 1)])
    assert ended.wait(PATIENCE_S)
    busy.hand([])
    busy.join()
    since_ns, after = seen
    assert since_ns is not None
    assert before_ns <= since_ns <= time.perf_counter_ns()
    assert after is None


def test_while_it_waits_it_keeps_no_job(worker: Worker) -> None:
    freed = threading.Event()
    piece = Piece()
    weakref.finalize(piece, freed.set)
    worker.hand([make_job(make_lane(), 1, piece)])
    del piece
    assert freed.wait(PATIENCE_S)
