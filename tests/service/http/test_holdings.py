"""Bodies and answers are held within the settings, and given back however a request ends."""

import asyncio

import pytest
from starlette.requests import Request
from starlette.types import Message

from service.errors import UnavailableError
from service.http.holdings import SMALL_BYTES, Holdings
from service.settings import Settings

BODY = b"seven b"
LARGE = SMALL_BYTES + 11


def make_holdings(**settings: int) -> Holdings:
    return Holdings(Settings.model_construct(**Settings().model_dump() | settings))


def make_request(*parts: bytes) -> Request:
    left = list(parts)

    async def receive() -> Message:
        return {"type": "http.request", "body": left.pop(0), "more_body": bool(left)}

    return Request({"type": "http", "headers": []}, receive)


async def test_a_body_is_held_until_the_end_of_the_block() -> None:
    holdings = make_holdings()
    with holdings.open() as held:
        assert await held.read(make_request(b"seven", b" b")) == BODY
        assert holdings.bodies.in_use_bytes == 7
    assert holdings.bodies.in_use_bytes == 0


async def test_an_answer_is_held_until_its_client_has_taken_it() -> None:
    holdings = make_holdings()
    with holdings.open() as held:
        await held.hold_answer(LARGE)
        give_back = held.keep_answer()
    assert holdings.answers.in_use_bytes == LARGE
    give_back()
    assert holdings.answers.in_use_bytes == 0


async def test_a_request_that_fails_holds_nothing() -> None:
    holdings = make_holdings()

    async def fail() -> None:
        with holdings.open() as held:
            await held.hold_answer(LARGE)
            raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011 - the one above
        await fail()
    assert holdings.answers.in_use_bytes == 0


async def test_an_answer_waits_for_those_that_nobody_takes_and_is_refused_in_the_end() -> None:
    holdings = make_holdings(max_answer_bytes_in_flight=200_000, body_timeout_s=0)
    with holdings.open() as first, holdings.open() as second:
        await first.hold_answer(150_000)
        with pytest.raises(UnavailableError) as caught:
            await second.hold_answer(70_000)
    assert str(caught.value) == (
        "150000 bytes of answers are held already, no room for 70000 more within 200000 "
        "(LIMELIGHT_MAX_ANSWER_BYTES_IN_FLIGHT) after 0 s; try again later"
    )


async def test_a_body_beyond_the_bound_waits_unread() -> None:
    holdings = make_holdings(max_body_bytes_in_flight=10)
    with holdings.open() as first, holdings.open() as second:
        await first.read(make_request(BODY))
        waiting = asyncio.create_task(second.read(make_request(BODY)))
        await asyncio.sleep(0.02)
        assert not waiting.done()
        assert holdings.bodies.in_use_bytes == 7
        first.__exit__(None, None, None)
        assert await waiting == BODY


async def test_a_small_answer_waits_for_nobody() -> None:
    holdings = make_holdings(max_answer_bytes_in_flight=200_000, body_timeout_s=0)
    with holdings.open() as first, holdings.open() as second:
        await first.hold_answer(200_000)
        await second.hold_answer(SMALL_BYTES)


async def test_an_answer_that_is_written_holds_no_more_than_its_bytes() -> None:
    holdings = make_holdings()
    with holdings.open() as held:
        await held.hold_answer(LARGE)
        held.shrink_answer(500)
        assert holdings.answers.in_use_bytes == 500
        held.shrink_answer(600)
        assert holdings.answers.in_use_bytes == 500, "nothing is held that was not asked for"
    assert holdings.answers.in_use_bytes == 0


async def test_the_arrays_of_an_archive_are_held_beside_it() -> None:
    holdings = make_holdings()
    with holdings.open() as held:
        await held.read(make_request(BODY))
        await held.hold_arrays(100)
        assert holdings.bodies.in_use_bytes == 107
    assert holdings.bodies.in_use_bytes == 0
