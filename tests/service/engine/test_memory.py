"""The C library's memory: where it comes from, and that it goes back."""

import ctypes
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from service.engine.memory import free_memory, use_one_arena

BLOCKS, BLOCK_BYTES = 2000, 100_000  # smaller than what the C library gives back by itself


def read_resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_what_was_freed_is_given_back() -> None:
    blocks = [np.ones(BLOCK_BYTES, np.uint8) for _ in range(BLOCKS)]
    last = np.ones(BLOCK_BYTES, np.uint8)  # keeps the heap from shrinking at its end
    blocks.clear()
    before = read_resident_bytes()
    free_memory()
    assert before - read_resident_bytes() > BLOCKS * BLOCK_BYTES // 2
    assert last.all()


@pytest.mark.parametrize("error", [OSError, TypeError])
def test_another_c_library_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    def fail(_: None) -> None:
        raise error

    monkeypatch.setattr(ctypes, "CDLL", fail)
    free_memory()
    monkeypatch.setattr(ctypes, "CDLL", lambda _: object())
    free_memory()


def test_one_arena_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, int]] = []
    library = SimpleNamespace(mallopt=lambda *what: asked.append(what))
    monkeypatch.setattr(ctypes, "CDLL", lambda _: library)
    use_one_arena()
    assert asked == [(-8, 1), (-3, 2**25), (-1, 2**26)]


def test_another_c_library_keeps_its_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda _: SimpleNamespace())
    use_one_arena()
