"""Memory of request bodies that goes from one to the next."""

import mmap
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, Final, cast
from weakref import ref

import numpy as np
from numpy.typing import NDArray

# Smaller bodies are left to the C library, which has pages for them most of the time.
LEAST_BYTES: Final = 2**17
# What waits for the next body, at most.
KEPT_BYTES: Final = 2**26


def find_most_room() -> int:
    """The room of a pool that nothing else is in the way of."""
    return KEPT_BYTES


class BufferPool:
    """Lends each large body pages of its own, which come back once nothing points at them.

    New pages are cleared by the system one after the other as they are written, which takes as long
    as a sixth of what computes on them: 16 connections of 4x256 got 0.70 of the requests per second
    of onnxruntime alone with new ones, and 0.80 with those of bodies before (measured). The heap
    has old pages, too, and keeps them: 384 MiB after 64 bodies of 6 MiB.

    Any thread may let go of a body, and may do so in the midst of any call here.

    Args:
        find_room: tells how many bytes may wait for the next body now; `KEPT_BYTES` at most.
    """

    def __init__(self, find_room: Callable[[], int] = find_most_room) -> None:
        self._find_room = find_room
        self._lock = threading.RLock()
        # What tells that nothing points at a block any more, by the block's id.
        self._lent: dict[int, ref[NDArray[np.uint8]]] = {}
        # By size, the size that was asked for last at the end.
        self._kept: dict[int, list[mmap.mmap]] = {}
        self._kept_bytes = 0

    @property
    def kept_bytes(self) -> int:
        """What waits for the next body."""
        return self._kept_bytes

    def take(self, size_bytes: int) -> memoryview:
        """Memory for a body; what it holds is left from another one.

        Args:
            size_bytes: of the body.
        """
        if size_bytes < LEAST_BYTES:
            return view(np.empty(size_bytes, np.uint8))
        block = self._find(round_up(size_bytes))
        array = np.frombuffer(block, np.uint8, size_bytes)
        self._lent[id(block)] = ref(array, partial(self._give_back, block))
        return view(array)

    def clear(self) -> None:
        """Give to the system what waits for the next body."""
        with self._lock:
            self._kept.clear()
            self._kept_bytes = 0

    def _find(self, block_bytes: int) -> mmap.mmap:
        with self._lock:
            kept = self._kept[block_bytes] = self._kept.pop(block_bytes, [])
            if kept:
                self._kept_bytes -= block_bytes
                return kept.pop()
            # Otherwise blocks of sizes that nobody asks for any more would be kept for ever.
            self._make_room(block_bytes)
        return mmap.mmap(-1, block_bytes)

    def _give_back(self, block: mmap.mmap, _: ref[NDArray[np.uint8]]) -> None:
        del self._lent[id(block)]
        with self._lock:
            if self._kept_bytes + len(block) <= self._find_room():
                self._kept_bytes += len(block)
                self._kept.setdefault(len(block), []).append(block)

    def _make_room(self, size_bytes: int) -> None:
        most_bytes = self._find_room() - size_bytes
        for block_bytes, kept in [*self._kept.items()]:
            while kept and self._kept_bytes > most_bytes:
                self._kept_bytes -= block_bytes
                kept.pop()


def round_up(size_bytes: int) -> int:
    """The size of the block for a body: an eighth larger at most, so that there are few sizes."""
    step = 1 << max(12, size_bytes.bit_length() - 4)
    return -(-size_bytes // step) * step


def view(array: NDArray[np.uint8]) -> memoryview:
    """The bytes of an array."""
    return memoryview(cast(Any, array))
