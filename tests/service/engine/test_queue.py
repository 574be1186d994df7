"""The queue against a list that is searched from its start: order, bounds, and nothing lost."""

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from service.engine.job import ORDER, Job
from service.engine.lane import Lane
from service.engine.queue import Queue
from service.errors import UnavailableError
from service.inference import Schedule
from tests.service.engine.work import Piece, make_job, make_lane

MAX_REQUESTS, MAX_BYTES = 7, 100
MAX_ROWS = 4
AnyJob = Job[Piece, Any]
AnyLane = Lane[Piece, Any]


class QueueMachine(RuleBasedStateMachine):
    """Any sequence of what the scheduler does, beside jobs in a plain list."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = Queue(MAX_REQUESTS, MAX_BYTES)
        self.lanes = [make_lane(max_rows=MAX_ROWS, max_running=n) for n in (None, 1, 2)]
        self.waiting: list[AnyJob] = []
        self.ripe: set[AnyJob] = set()
        self.running: list[AnyLane] = []
        self.taken: list[AnyJob] = []
        self.number = 0

    @rule(
        lane=st.integers(0, 2),
        priority=st.integers(0, 3),
        key=st.sampled_from([None, "a", "b"]),
        rows=st.integers(1, 5),
        size_bytes=st.sampled_from([0, 1, 30, 60, 101]),
    )
    def add(self, lane: int, priority: int, key: str | None, rows: int, size_bytes: int) -> None:
        self.number += 1
        piece = Piece(size_bytes=size_bytes, rows=rows, key=key)
        job = make_job(self.lanes[lane], self.number, piece, Schedule(priority))
        held = sum(job.item.size_bytes for job in self.waiting)
        is_full = len(self.waiting) >= MAX_REQUESTS
        if is_full or (self.waiting and held + size_bytes > MAX_BYTES):
            text = "^7 requests" if is_full else f"^{held} bytes"
            with pytest.raises(UnavailableError, match=text):
                self.queue.add(job)
            return
        self.queue.add(job)
        self.waiting.append(job)
        if key is None:
            self.ripe.add(job)
        self.ripen_full_groups()

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def discard(self, data: st.DataObject) -> None:
        job = data.draw(st.sampled_from(self.waiting))
        assert self.queue.discard(job)
        assert not self.queue.discard(job)
        self.waiting.remove(job)
        self.ripen_full_groups()

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def ripen(self, data: st.DataObject) -> None:
        job = data.draw(st.sampled_from(self.waiting))
        self.queue.ripen(job)
        self.ripe.add(job)

    @rule()
    def take(self) -> None:
        wanted = self.choose()
        found = self.queue.take()
        assert found == wanted
        for job in found:
            self.waiting.remove(job)
        self.taken += found
        if found:
            self.running.append(found[0].lane)
        self.ripen_full_groups()

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def finish(self, data: st.DataObject) -> None:
        lane = data.draw(st.sampled_from(self.running))
        self.running.remove(lane)
        self.queue.finish(lane)

    @rule(lane=st.integers(0, 2), key=st.sampled_from([None, "a"]))
    def start(self, lane: int, key: str | None) -> None:
        if self.choose():
            return  # the scheduler asks this only where nothing that waits may start
        job = make_job(self.lanes[lane], -1, Piece(key=key))
        wanted = key is None and not self.is_full(job.lane)
        assert self.queue.start(job) == wanted
        if wanted:
            self.running.append(job.lane)

    def choose(self) -> list[AnyJob]:
        """What runs next, by the words of the documentation."""
        ready = [job for job in self.waiting if job in self.ripe and not self.is_full(job.lane)]
        if not ready:
            return []
        first = min(ready, key=ORDER)
        chosen, rows = [first], first.item.rows
        for job in self.find_group(first):
            rows += job.item.rows if job is not first else 0
            if rows > MAX_ROWS and job is not first:
                break
            chosen += [job] if job is not first else []
        return chosen

    def find_group(self, job: AnyJob) -> list[AnyJob]:
        """Those that `job` may be joined with, itself among them, in order."""
        alike = [other for other in self.waiting if (other.lane, other.key) == (job.lane, job.key)]
        return [] if job.key is None else sorted(alike, key=ORDER)

    def ripen_full_groups(self) -> None:
        for job in self.waiting:
            group = self.find_group(job)
            if group and sum(other.item.rows for other in group) >= MAX_ROWS:
                self.ripe.add(group[0])

    def is_full(self, lane: AnyLane) -> bool:
        return self.running.count(lane) == lane.max_running

    @invariant()
    def there_is_room_for_a_job_of_no_size_or_there_is_none(self) -> None:
        held = sum(job.item.size_bytes for job in self.waiting)
        is_full = len(self.waiting) >= MAX_REQUESTS or (bool(self.waiting) and held > MAX_BYTES)
        assert self.queue.has_room() is not is_full

    @invariant()
    def counts_are_those_of_the_list(self) -> None:
        assert self.queue.count == len(self.waiting)
        assert self.queue.size_bytes == sum(job.item.size_bytes for job in self.waiting)
        for lane in self.lanes:
            assert lane.waiting == sum(job.lane is lane for job in self.waiting)
            assert lane.running == self.running.count(lane)

    @invariant()
    def nothing_is_taken_twice(self) -> None:
        assert len(self.taken) == len(set(self.taken))
        assert not set(self.taken) & set(self.waiting)

    def teardown(self) -> None:
        """All that waits is there to be taken, as soon as it may."""
        while self.waiting:
            for lane in self.running:
                self.queue.finish(lane)
            self.running.clear()
            for job in self.waiting:
                self.queue.ripen(job)
                self.ripe.add(job)
            self.take()
        assert self.queue.take() == []
        assert (self.queue.count, self.queue.size_bytes) == (0, 0)


def test_any_sequence_gives_what_a_plain_list_gives() -> None:
    run_state_machine_as_test(
        QueueMachine, settings=settings(max_examples=200, stateful_step_count=40)
    )


def test_a_queue_full_by_count_says_how_full() -> None:
    queue, lane = Queue(2, MAX_BYTES), make_lane()
    for number in range(2):
        queue.add(make_job(lane, number))
    with pytest.raises(UnavailableError) as caught:
        queue.add(make_job(lane, 2))
    assert str(caught.value) == (
        "2 requests are waiting already, expected fewer than 2 (LIMELIGHT_MAX_QUEUE_REQUESTS); "
        "try again later"
    )


def test_a_queue_full_by_bytes_says_how_full() -> None:
    queue, lane = Queue(MAX_REQUESTS, 1000), make_lane()
    for number, size_bytes in enumerate((600, 400)):
        queue.add(make_job(lane, number, Piece(size_bytes=size_bytes)))
    with pytest.raises(UnavailableError) as caught:
        queue.add(make_job(lane, 2, Piece(size_bytes=7)))
    assert str(caught.value) == (
        "1000 bytes are waiting already, no room for 7 more within 1000 "
        "(LIMELIGHT_MAX_QUEUE_BYTES); try again later"
    )


def test_a_job_larger_than_the_bound_may_wait_alone() -> None:
    queue, lane = Queue(MAX_REQUESTS, 1000), make_lane()
    queue.add(large := make_job(lane, 0, Piece(size_bytes=5000)))
    with pytest.raises(UnavailableError, match=r"^5000 bytes are waiting already"):
        queue.add(make_job(lane, 1, Piece(size_bytes=0)))
    assert queue.take() == [large]


def test_priority_holds_between_lanes() -> None:
    queue = Queue(MAX_REQUESTS, MAX_BYTES)
    low, high = make_lane(), make_lane()
    jobs = [
        make_job(low, 0), make_job(low, 1, schedule=Schedule(2)),
        make_job(high, 2, schedule=Schedule(1)), make_job(high, 3),
    ]  # fmt: skip
    for job in jobs:
        queue.add(job)
    assert [queue.take() for _ in jobs] == [[jobs[2]], [jobs[1]], [jobs[0]], [jobs[3]]]


def test_jobs_of_other_lanes_overtake_those_of_a_full_one() -> None:
    queue = Queue(MAX_REQUESTS, MAX_BYTES)
    narrow, wide = make_lane(max_running=1), make_lane()
    first, second = make_job(narrow, 0), make_job(narrow, 1, schedule=Schedule(1))
    for job in (first, second, third := make_job(wide, 2)):
        queue.add(job)
    assert queue.take() == [second]
    assert queue.take() == [third]
    assert queue.take() == []
    queue.finish(narrow)
    assert queue.take() == [first]


def test_a_lane_without_jobs_is_not_held() -> None:
    queue, lane = Queue(MAX_REQUESTS, MAX_BYTES), make_lane(max_running=1)
    for number in range(2):
        queue.add(make_job(lane, number))
    queue.discard(queue_head := queue.take()[0])
    assert queue_head.number == 0
    queue.finish(lane)
    queue.take()
    queue.finish(lane)
    assert (lane.head, lane.waiting, lane.running) == (None, 0, 0)
