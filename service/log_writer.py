"""Lines on their way to standard error, which may be slow, full or closed: nobody waits for it."""

import os
import select
import threading
import time
from collections.abc import Callable, Iterator
from queue import Empty, SimpleQueue
from typing import Final

# A line with its end, or what makes it: that runs on the writer's thread, and must not raise.
Line = bytes | Callable[[], bytes]

MAX_WAITING_BYTES: Final = 4 * 2**20
# A line that comes alone is written at once. Those that come within this time after it are written
# together: one wake of the thread, and one switch of the interpreter's lock, for all of them. It is
# also what a killed process may lose.
PAUSE_S: Final = 0.01
PATIENCE_S: Final = 1.0
END_OF_LINE: Final = 0x0A
# write(2) does not mix as many bytes with those that others write into the same pipe, as a library
# in C may.
ATOMIC_BYTES: Final = select.PIPE_BUF


class LogWriter:
    """Writes lines on a thread of its own; drops and counts those that it cannot keep or write.

    One thread at a time may call `write`, as a `logging.Handler` sees to.
    """

    def __init__(self, descriptor: int, describe_loss: Callable[[int], bytes]) -> None:
        """Start the thread.

        Args:
            descriptor: of the file to write to.
            describe_loss: makes the line that tells how many lines were lost.
        """
        self._descriptor = descriptor
        self._describe_loss = describe_loss
        self._waiting: SimpleQueue[tuple[Line, int] | threading.Event] = SimpleQueue()
        # Each number is written by one thread alone: the first two where `write` is called, the
        # others by the writer.
        self._taken_bytes = self._dropped_lines = 0
        self._done_bytes = self._failed_lines = self._told_lines = 0
        self._is_torn = False
        self._is_closed = False
        threading.Thread(target=self._run, name="log", daemon=True).start()

    @property
    def lost_lines(self) -> int:
        """Lines that were dropped, or could not be written, so far."""
        return self._dropped_lines + self._failed_lines

    def write(self, line: Line, size_bytes: int) -> None:
        """Take a line; never waits.

        Args:
            line: to write.
            size_bytes: what it takes of `MAX_WAITING_BYTES` until it is written.
        """
        waiting_bytes = self._taken_bytes - self._done_bytes
        if self._is_closed or waiting_bytes + size_bytes > MAX_WAITING_BYTES:
            self._dropped_lines += 1
        else:
            self._taken_bytes += size_bytes
            self._waiting.put((line, size_bytes))

    def flush(self) -> None:
        """Wait until what was taken is written, `PATIENCE_S` at most."""
        if not self._is_closed:
            self._await_turn()

    def close(self) -> None:
        """Write what was taken, and end the thread."""
        if not self._is_closed:
            self._is_closed = True
            self._await_turn()

    def _await_turn(self) -> None:
        turn = threading.Event()
        self._waiting.put(turn)
        turn.wait(PATIENCE_S)

    def _run(self) -> None:
        while not self._is_closed or not self._waiting.empty():
            items = [self._waiting.get(), *self._take_all()]
            lines = [item for item in items if isinstance(item, tuple)]
            self._write_all([line() if callable(line) else line for line, _ in lines])
            self._done_bytes += sum(size_bytes for _, size_bytes in lines)
            for item in items:
                if isinstance(item, threading.Event):
                    item.set()
            if lines:
                time.sleep(PAUSE_S)

    def _take_all(self) -> list[tuple[Line, int] | threading.Event]:
        items = []
        try:
            while True:
                items.append(self._waiting.get_nowait())
        except Empty:
            return items

    def _write_all(self, lines: list[bytes]) -> None:
        left = b"".join(map(self._write, join_lines(lines)))
        self._failed_lines += left.count(b"\n")
        lost_lines = self.lost_lines
        news = lost_lines - self._told_lines
        if not left and news and not self._write(self._describe_loss(news)):
            self._told_lines = lost_lines

    def _write(self, lines: bytes) -> bytes:
        """Write lines; what could not be written is returned."""
        data = b"\n" + lines if self._is_torn else lines
        written = 0
        try:
            while written < len(data):
                written += self._write_some(memoryview(data)[written:])
        except OSError:  # closed, or the disk is full
            pass
        if written:
            self._is_torn = data[written - 1] != END_OF_LINE
        return data[written:]

    def _write_some(self, data: memoryview) -> int:
        try:
            return os.write(self._descriptor, data)
        except BlockingIOError:  # whoever shares the file made it so
            select.select([], [self._descriptor], [])
            return 0


def join_lines(lines: list[bytes]) -> Iterator[bytes]:
    """Groups of lines, of `ATOMIC_BYTES` at most; a longer line is alone."""
    group, size_bytes = list[bytes](), 0
    for line in lines:
        if size_bytes + len(line) > ATOMIC_BYTES and group:
            yield b"".join(group)
            group, size_bytes = [], 0
        group.append(line)
        size_bytes += len(line)
    yield b"".join(group)
