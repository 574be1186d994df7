"""Where a request is computed depends on the others, and on the room that they leave."""

import asyncio
import json
from typing import Any

import numpy as np
import pytest

from service.answering import answer_v2
from service.state import State
from service.terms import UNKNOWN, Terms, always, never

NOW = Terms(try_hold=always, is_alone=always)
BODY: dict[str, Any] = {
    "inputs": [{"name": "query", "shape": [2, 5, 6], "datatype": "FP32", "data": [0.5] * 60}]
}


async def find_wait(state: State, terms: Terms, **members: Any) -> int:
    """How long a request waited for a thread; 0 where it needed none."""
    body = json.dumps(BODY | members).encode()
    _, answer = await answer_v2(state, state.find_model("demo"), body, [], terms)
    return answer.times.queue_ns


async def open_graph(state: State) -> None:
    """Ask until no thread is needed: one opens the graph, and idles a moment later."""
    async with asyncio.timeout(60):
        while await find_wait(state, NOW):  # noqa: ASYNC110 - nobody says when a thread idles
            await asyncio.sleep(0.01)


async def test_nothing_is_known_unless_it_is_said() -> None:
    assert (UNKNOWN.try_hold(1), UNKNOWN.is_alone()) == (False, False)
    await UNKNOWN.hold(2**60)
    assert (never(1), always(1)) == (False, True)


async def test_a_small_request_that_is_alone_and_has_room_needs_no_thread(state: State) -> None:
    assert await find_wait(state, NOW) > 0, "the first one opens the graph"
    await open_graph(state)


@pytest.mark.parametrize(
    ("terms", "members"),
    [
        pytest.param(Terms(try_hold=always), {}, id="not alone"),
        pytest.param(Terms(is_alone=always), {}, id="no room"),
        pytest.param(NOW, {"parameters": {"timeout": 10**9}}, id="a timeout"),
    ],
)
async def test_any_other_goes_to_a_thread(
    state: State, terms: Terms, members: dict[str, Any]
) -> None:
    await open_graph(state)
    assert await find_wait(state, terms, **members) > 0


async def test_room_is_asked_for_once_and_for_what_is_computed(state: State) -> None:
    asked: list[int] = []
    await open_graph(state)

    def hold(size_bytes: int) -> bool:
        asked.append(size_bytes)
        return True

    await find_wait(state, Terms(try_hold=hold, is_alone=always), outputs=[{"name": "output"}])
    assert asked == [4 * np.zeros((2, 5, 6), np.float32).nbytes]
