"""Bytes are lent within the bound, to the oldest first, and those who ask get them in the end."""

import asyncio

import pytest

from service.errors import UnavailableError
from service.http.budget import Account, Budget

SETTING = "LIMELIGHT_MAX_BODY_BYTES_IN_FLIGHT"
LONG_S = 10  # what waits so long waits in vain
SHORT_S = 0.01


def make_budget(
    max_bytes: int = 100, overdraft_bytes: int = 50, timeout_s: float = LONG_S
) -> Budget:
    return Budget("request bodies", SETTING, max_bytes, overdraft_bytes, timeout_s)


async def settle() -> None:
    """Let every task go as far as it can."""
    for _ in range(10):
        await asyncio.sleep(0)


async def grow(account: Account, size_bytes: int) -> asyncio.Task[None]:
    """Begin to grow; the task has gone as far as it can."""
    task = asyncio.create_task(account.grow(size_bytes))
    await settle()
    return task


async def test_what_fits_is_lent_at_once_and_comes_back_once() -> None:
    budget = make_budget()
    with budget.open() as account:
        assert account.try_grow(30)
        await account.grow(70)
        assert (budget.in_use_bytes, account.held_bytes) == (100, 100)
    account.close()
    assert (budget.in_use_bytes, account.held_bytes) == (0, 0)


async def test_what_does_not_fit_waits_until_something_comes_back() -> None:
    budget = make_budget()
    first, second = budget.open(), budget.open()
    assert first.try_grow(80)
    first.seal()
    assert not second.try_grow(30)
    growing = await grow(second, 30)
    assert (growing.done(), budget.waiting, budget.in_use_bytes) == (False, 1, 80)
    first.close()
    await growing
    assert (budget.waiting, budget.in_use_bytes) == (0, 30)


async def test_who_waits_too_long_is_told_the_setting() -> None:
    budget = make_budget(timeout_s=SHORT_S)
    first, second = budget.open(), budget.open()
    assert first.try_grow(80)
    first.seal()
    text = (
        r"^80 bytes of request bodies are held already, no room for 30 more within 100 "
        r"\(LIMELIGHT_MAX_BODY_BYTES_IN_FLIGHT\) after 0.01 s; try again later$"
    )
    with pytest.raises(UnavailableError, match=text):
        await second.grow(30)
    assert (budget.waiting, budget.in_use_bytes) == (0, 80)


async def test_the_oldest_request_goes_first_not_the_one_that_asked_first() -> None:
    budget = make_budget(overdraft_bytes=10)
    whole, older, younger = budget.open(), budget.open(), budget.open()
    assert whole.try_grow(100)
    whole.seal()
    younger_grows = await grow(younger, 60)
    older_grows = await grow(older, 60)
    whole.close()
    await settle()
    assert (older_grows.done(), younger_grows.done()) == (True, False)
    older.close()
    await younger_grows


async def test_nobody_goes_before_an_older_one_that_waits() -> None:
    budget = make_budget()
    whole, older, younger = budget.open(), budget.open(), budget.open()
    assert whole.try_grow(90)
    whole.seal()
    older_grows = await grow(older, 60)
    assert not younger.try_grow(1), "small ones would keep a large one waiting for ever"
    younger_grows = await grow(younger, 1)
    older_grows.cancel()
    await younger_grows
    assert budget.in_use_bytes == 91


async def test_an_older_one_goes_before_those_that_wait() -> None:
    budget = make_budget()
    oldest, whole, younger = budget.open(), budget.open(), budget.open()
    assert whole.try_grow(90)
    whole.seal()
    await grow(younger, 60)
    assert oldest.try_grow(10)


async def test_one_that_waits_and_leaves_gives_back_all_it_had() -> None:
    budget = make_budget()
    whole, leaving = budget.open(), budget.open()
    assert whole.try_grow(80)
    whole.seal()

    async def receive() -> None:
        with leaving:
            await leaving.grow(20)
            await leaving.grow(30)

    task = asyncio.create_task(receive())
    await settle()
    assert (budget.in_use_bytes, budget.waiting) == (100, 1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (budget.in_use_bytes, budget.waiting) == (80, 0)


async def test_one_that_leaves_in_the_moment_it_is_served_gives_it_back() -> None:
    budget = make_budget()
    whole, leaving = budget.open(), budget.open()
    assert whole.try_grow(80)
    whole.seal()
    task = await grow(leaving, 30)
    whole.close()  # it has been served, and does not know yet
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    leaving.close()
    assert budget.in_use_bytes == 0


async def test_bodies_that_are_all_half_read_come_to_their_ends() -> None:
    budget = make_budget()
    accounts = [budget.open() for _ in range(4)]
    for account in accounts:
        assert account.try_grow(25)
    younger = [await grow(account, 25) for account in reversed(accounts[1:])]
    assert budget.in_use_bytes == 125, "one of them overdraws, as no other can end"
    oldest = await grow(accounts[0], 25)
    assert not oldest.done(), "but no second"
    overdrawn = next(account for account in accounts if account.held_bytes == 50)
    overdrawn.close()
    await settle()
    for task, account in [(oldest, accounts[0]), *zip(younger, accounts[:0:-1], strict=True)]:
        if account is not overdrawn:
            await task
            account.close()
    assert budget.in_use_bytes == 0


async def test_nobody_overdraws_while_another_will_give_back_by_itself() -> None:
    budget = make_budget()
    whole, growing = budget.open(), budget.open()
    assert whole.try_grow(50)
    assert growing.try_grow(50)
    whole.seal()
    assert not growing.try_grow(1)


async def test_the_overdraft_has_a_bound() -> None:
    budget = make_budget(timeout_s=SHORT_S)
    one, other = budget.open(), budget.open()
    assert one.try_grow(50)
    assert other.try_grow(50)
    assert other.try_grow(50)
    with pytest.raises(UnavailableError):
        await other.grow(1)


async def test_who_overdraws_goes_on_though_older_ones_wait() -> None:
    budget = make_budget()
    older, overdrawing = budget.open(), budget.open()
    assert older.try_grow(50)
    assert overdrawing.try_grow(60)
    older_grows = await grow(older, 10)
    await overdrawing.grow(10)
    overdrawing.seal()
    assert not older_grows.done()
    overdrawing.close()
    await older_grows


async def test_who_overdraws_and_had_to_wait_is_served_before_older_ones() -> None:
    budget = make_budget()
    older, whole, overdrawing = budget.open(), budget.open(), budget.open()
    assert older.try_grow(30)
    assert whole.try_grow(30)
    assert overdrawing.try_grow(50)
    whole.seal()
    overdrawing_grows = await grow(overdrawing, 15)
    older_grows = await grow(older, 60)
    whole.close()
    await overdrawing_grows
    assert not older_grows.done()
    overdrawing.close()
    await older_grows


@pytest.mark.parametrize("size", [101, 1000])
async def test_more_than_the_whole_bound_is_lent_where_nobody_else_holds_any(size: int) -> None:
    budget = make_budget()
    large, other = budget.open(), budget.open()
    assert large.try_grow(size // 2)
    assert large.try_grow(size - size // 2)
    assert not other.try_grow(51)
    large.close()
    assert other.try_grow(51)


async def test_a_request_that_is_not_whole_after_all_is_no_longer_waited_for() -> None:
    budget = make_budget()
    inflating, other = budget.open(), budget.open()
    assert inflating.try_grow(40)
    assert other.try_grow(60)
    inflating.seal()
    assert not other.try_grow(10)
    growing = await grow(inflating, 10)  # its body was whole, but inflates
    assert growing.done()
    assert not other.try_grow(10), "it may overdraw now, and alone"


async def test_an_account_that_is_closed_holds_nothing_ever_again() -> None:
    budget = make_budget()
    whole, closed = budget.open(), budget.open()
    assert whole.try_grow(100)
    whole.seal()
    growing = await grow(closed, 10)
    closed.close()
    with pytest.raises(asyncio.CancelledError):
        await growing
    closed.seal()
    with pytest.raises(RuntimeError, match=r"^the account is closed$"):
        closed.try_grow(1)
    whole.close()
    assert (budget.in_use_bytes, budget.waiting) == (0, 0)
