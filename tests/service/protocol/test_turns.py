"""Threads give the event loop its turn, and it gives none itself."""

import time

import pytest

from service.protocol.turns import LONG_BYTES, give_way
from service.state import OFFLOAD_TEXT_BYTES


@pytest.mark.parametrize(("worked_bytes", "turns"), [(LONG_BYTES - 1, []), (LONG_BYTES, [0])])
def test_long_work_is_followed_by_a_turn_of_others(
    monkeypatch: pytest.MonkeyPatch, worked_bytes: int, turns: list[float]
) -> None:
    taken: list[float] = []
    monkeypatch.setattr(time, "sleep", taken.append)
    give_way(worked_bytes)
    assert taken == turns


def test_what_the_event_loop_does_itself_is_short() -> None:
    """A float32 has 4 bytes, and in JSON at most 15: -1.17549435e-38 and a comma."""
    assert OFFLOAD_TEXT_BYTES <= LONG_BYTES
    assert OFFLOAD_TEXT_BYTES / 4 * 16 <= LONG_BYTES
