"""Memory goes back to the system once no request comes any more, and once only."""

from service.http.buffer_pool import LEAST_BYTES
from service.http.holdings import SMALL_BYTES, Holdings
from service.settings import Settings
from service.tidying import Tidying


async def test_memory_is_given_back_once_after_the_last_request() -> None:
    holdings, freed = Holdings(Settings()), list[int]()
    tidying = Tidying(holdings, lambda: freed.append(1))
    await tidying.look()
    assert freed == [], "nothing came"
    with holdings.open():
        await tidying.look()
        assert freed == [], "one came since the last look"
    await tidying.look()
    await tidying.look()
    assert freed == [1]
    with holdings.open():
        await tidying.look()
    await tidying.look()
    assert freed == [1, 1]


async def test_an_answer_that_its_client_has_not_taken_is_waited_for() -> None:
    holdings, freed = Holdings(Settings()), list[int]()
    tidying = Tidying(holdings, lambda: freed.append(1))
    with holdings.open() as held:
        await held.hold_answer(SMALL_BYTES + 5)
        give_back = held.keep_answer()
    await tidying.look()
    await tidying.look()
    assert freed == []
    give_back()
    await tidying.look()
    assert freed == [1]


async def test_the_memory_of_bodies_is_given_back_with_the_rest() -> None:
    holdings = Holdings(Settings())
    tidying = Tidying(holdings, lambda: None)
    with holdings.open():
        holdings.buffers.take(LEAST_BYTES)
    await tidying.look()
    assert holdings.buffers.kept_bytes == LEAST_BYTES
    await tidying.look()
    assert holdings.buffers.kept_bytes == 0
