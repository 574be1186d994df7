"""Lines on their way to standard error: nobody waits for it, and none is torn."""

import itertools
import os
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.log_writer import ATOMIC_BYTES, MAX_WAITING_BYTES, LogWriter, join_lines

PATIENCE_S = 10
FULL = Path("/dev/full")


def tell_loss(lines: int) -> bytes:
    """The line about lost lines."""
    return b"%d lost\n" % lines


def write(writer: LogWriter, line: bytes) -> None:
    """Write a line that takes its own size."""
    writer.write(line, len(line))


class Pipe:
    """A pipe that a writer writes to."""

    def __init__(self) -> None:
        self.reader, self.entry = os.pipe()
        self.writer = LogWriter(self.entry, tell_loss)

    def read(self) -> bytes:
        return os.read(self.reader, 2**24)

    def read_until(self, end: bytes) -> bytes:
        """All up to an end."""
        found, deadline = b"", time.monotonic() + PATIENCE_S
        while not found.endswith(end):
            assert time.monotonic() < deadline
            found += self.read()
        return found

    def close(self) -> None:
        for descriptor in (self.reader, self.entry):
            try:
                os.close(descriptor)
            except OSError:  # the test closed it
                continue


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    """A pipe and its writer."""
    made = Pipe()
    yield made
    made.close()
    made.writer.close()


def test_lines_are_written_in_order(pipe: Pipe) -> None:
    lines = [b"%d\n" % number for number in range(1000)]
    for line in lines:
        write(pipe.writer, line)
    pipe.writer.flush()
    assert pipe.read() == b"".join(lines)


def test_a_line_may_be_made_by_the_thread_that_writes_it(pipe: Pipe) -> None:
    makers: list[str] = []

    def make() -> bytes:
        makers.append(threading.current_thread().name)
        return b"made\n"

    write(pipe.writer, b"first\n")
    pipe.writer.write(make, 100)
    pipe.writer.flush()
    assert pipe.read() == b"first\nmade\n"
    assert makers == ["log"]


def test_a_line_that_is_not_made_yet_takes_what_is_said(pipe: Pipe) -> None:
    pipe.writer.write(lambda: b"never\n", MAX_WAITING_BYTES + 1)
    assert pipe.writer.lost_lines == 1
    pipe.writer.write(lambda: b"made\n", MAX_WAITING_BYTES)
    assert pipe.read_until(b" lost\n") == b"made\n1 lost\n"


def test_a_closed_writer_has_written_everything_and_its_thread_has_ended(pipe: Pipe) -> None:
    write(pipe.writer, b"last\n")
    pipe.writer.close()
    assert pipe.read() == b"last\n"
    write(pipe.writer, b"after\n")
    assert pipe.writer.lost_lines == 1
    pipe.writer.close()
    pipe.writer.flush()


def test_a_reader_that_does_not_read_is_not_waited_for(pipe: Pipe) -> None:
    """What does not fit is dropped and counted, and the reader is told once it reads again."""
    line = b"x" * 1023 + b"\n"
    sent = 3 * MAX_WAITING_BYTES // len(line)
    for _ in range(sent):
        write(pipe.writer, line)
    lost = pipe.writer.lost_lines
    assert lost >= sent - (MAX_WAITING_BYTES + 2**20) // len(line)
    found, told = b"", 0
    while (found.count(line), told) != (sent - lost, lost):
        found += pipe.read()
        told = sum(map(int, re.findall(rb"^(\d+) lost\n", found, re.MULTILINE)))
        assert told <= lost
    write(pipe.writer, b"goes on\n")
    assert pipe.read_until(b"goes on\n").endswith(b"goes on\n")


def test_a_line_larger_than_all_that_may_wait_is_dropped(pipe: Pipe) -> None:
    write(pipe.writer, b"x" * MAX_WAITING_BYTES + b"\n")
    write(pipe.writer, b"next\n")
    assert pipe.read_until(b" lost\n") == b"next\n1 lost\n"


def test_flushing_into_a_reader_that_does_not_read_ends(pipe: Pipe) -> None:
    for _ in range(200):
        write(pipe.writer, b"x" * 1023 + b"\n")
    begun = time.monotonic()
    pipe.writer.flush()
    pipe.writer.close()
    assert time.monotonic() - begun < PATIENCE_S
    pipe.read()


def test_a_reader_that_left_costs_the_lines_alone(pipe: Pipe) -> None:
    os.close(pipe.reader)
    for _ in range(3):
        write(pipe.writer, b"unread\n")
        pipe.writer.flush()
    assert pipe.writer.lost_lines == 3


def test_a_file_that_does_not_block_is_waited_for_by_the_thread_alone(pipe: Pipe) -> None:
    """Whoever shares the standard error of a process may have made it so."""
    os.set_blocking(pipe.entry, False)
    line = b"x" * 1023 + b"\n"
    for _ in range(300):
        write(pipe.writer, line)
    write(pipe.writer, b"end\n")
    assert pipe.read_until(b"end\n") == line * 300 + b"end\n"
    assert pipe.writer.lost_lines == 0


@pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")
def test_a_full_disk_costs_the_lines_and_they_are_told_when_there_is_room(tmp_path: Path) -> None:
    file = tmp_path / "log"
    descriptor = os.open(FULL, os.O_WRONLY)
    writer = LogWriter(descriptor, tell_loss)
    for number in (1, 2):
        write(writer, b"%d\n" % number)
        writer.flush()
    there = os.open(file, os.O_WRONLY | os.O_CREAT)
    os.dup2(there, descriptor)
    write(writer, b"3\n")
    writer.close()
    for each in (there, descriptor):
        os.close(each)
    assert file.read_bytes() == b"3\n2 lost\n"


def test_a_line_that_was_torn_does_not_take_the_next_with_it(
    pipe: Pipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    system_write, failures = os.write, [OSError(28, "no space left")]

    def write_half(descriptor: int, data: memoryview) -> int:
        if bytes(data) == b"torn line\n":
            return system_write(descriptor, data[:4])
        if bytes(data) == b" line\n" and failures:
            raise failures.pop()
        return system_write(descriptor, data)

    monkeypatch.setattr("service.log_writer.os.write", write_half)
    write(pipe.writer, b"torn line\n")
    pipe.writer.flush()
    write(pipe.writer, b"whole\n")
    pipe.writer.flush()
    assert pipe.read() == b"torn\nwhole\n1 lost\n"


def test_lines_are_not_mixed_with_those_that_others_write(pipe: Pipe) -> None:
    """The system mixes long writes into a pipe: a library in C may write into the same one."""
    line = b"x" * 999 + b"\n"
    found: list[bytes] = []

    def read() -> None:
        while b"end\n" not in b"".join(found[-2:]):
            found.append(os.read(pipe.reader, 512))

    reader = threading.Thread(target=read)
    reader.start()
    for _ in range(1000):
        write(pipe.writer, line)
    for _ in range(200):
        os.write(pipe.entry, b"other\n")
    pipe.writer.close()
    os.write(pipe.entry, b"end\n")
    reader.join()
    lines = b"".join(found).splitlines(keepends=True)
    assert set(lines) == {line, b"other\n", b"end\n"}
    assert lines.count(line) + pipe.writer.lost_lines == 1000


@given(st.lists(st.binary(max_size=3000)))
def test_groups_hold_all_lines_in_order_and_few_bytes(texts: list[bytes]) -> None:
    lines = [text.replace(b"\n", b"") + b"\n" for text in texts]
    groups = list(join_lines(lines))
    assert b"".join(groups) == b"".join(lines)
    for group in groups:
        assert len(group) <= ATOMIC_BYTES
        assert group.endswith(b"\n") or not lines
    assert all(len(a) + len(b) > 3001 for a, b in itertools.pairwise(groups))


def test_threads_may_write_one_after_the_other(pipe: Pipe) -> None:
    lock = threading.Lock()

    def write_many(name: bytes) -> None:
        for number in range(500):
            with lock:  # as logging.Handler does
                write(pipe.writer, name + b"%d\n" % number)

    threads = [threading.Thread(target=write_many, args=(name,)) for name in (b"a", b"b", b"c")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    pipe.writer.flush()
    lines = pipe.read().splitlines()
    assert len(lines) == 1500
    for name in (b"a", b"b", b"c"):
        own = [line for line in lines if line.startswith(name)]
        assert own == [name + b"%d" % number for number in range(500)]
