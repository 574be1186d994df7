"""Looks at the directory of models, one after the other."""

import asyncio

import pytest

from service.polling import Polling

PATIENCE_S = 10


async def test_it_looks_again_and_again_until_it_is_stopped() -> None:
    looks, enough = list[int](), asyncio.Event()

    async def look() -> None:
        looks.append(len(looks))
        if len(looks) == 3:
            enough.set()

    polling = Polling(look, 0.001)
    polling.start()
    assert looks == []  # the start has looked already
    await asyncio.wait_for(enough.wait(), PATIENCE_S)
    polling.stop()
    await asyncio.sleep(0)
    seen = len(looks)
    await asyncio.sleep(0.02)
    assert len(looks) == seen


async def test_a_look_ends_before_the_next_begins() -> None:
    running, enough, looks = set[int](), asyncio.Event(), iter(range(100))

    async def look() -> None:
        number = next(looks)
        assert not running
        running.add(number)
        await asyncio.sleep(0.005)
        running.remove(number)
        if number == 3:
            enough.set()

    polling = Polling(look, 0.0001)
    polling.start()
    await asyncio.wait_for(enough.wait(), PATIENCE_S)
    polling.stop()


@pytest.mark.parametrize("times", [1, 2])
async def test_what_was_never_started_may_be_stopped(times: int) -> None:
    async def look() -> None:
        raise NotImplementedError

    polling = Polling(look, 1)
    for _ in range(times):
        polling.stop()
