"""A budget under any traffic: bounds hold, nothing is lost, and every body comes to its end."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from service.http.budget import Account, Budget

LONG_S = 3600


async def settle() -> None:
    """Let every task go as far as it can."""
    for _ in range(10):
        await asyncio.sleep(0)


class Body:
    """A request whose body comes in parts.

    Attributes:
        account: of the budget.
        parts: sizes of those that are still to come.
        growing: the part that waits for room.
    """

    def __init__(self, account: Account, parts: list[int]) -> None:
        self.account = account
        self.parts = parts
        self.growing: asyncio.Task[None] | None = None

    @property
    def waits(self) -> bool:
        return self.growing is not None and not self.growing.done()


class Traffic(RuleBasedStateMachine):
    """Bodies that come, wait, are worked on, and leave, in any order."""

    MAX_BYTES, LARGEST, PART = 60, 39, 13

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.budget = Budget("bodies", "LIMELIGHT_X", self.MAX_BYTES, self.LARGEST, LONG_S)
        self.open: list[Body] = []

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        """Run until every task has gone as far as it can; check who went first."""
        waiting = {body for body in self.open if body.waits}

        async def work_and_settle() -> None:
            await work
            await settle()

        self.runner.run(work_and_settle())
        served = [body for body in self.open if body in waiting and not body.waits]
        ages = [body.account.age for body in self.open if body.waits]
        for body in served:
            overdraws = self.budget._overdrawer is body.account
            assert overdraws or all(body.account.age < age for age in ages)

    def find(self, kind: str) -> list[Body]:
        """The bodies to which something can happen."""
        fits: dict[str, Callable[[Body], bool]] = {
            "send": lambda body: bool(body.parts) and not body.waits,
            "seal": lambda body: not body.parts and not body.waits,
            "leave": lambda _: True,
        }
        return [body for body in self.open if fits[kind](body)]

    @rule(parts=st.lists(st.integers(1, PART), min_size=1, max_size=LARGEST // PART))
    def arrive(self, parts: list[int]) -> None:
        self.open.append(Body(self.budget.open(), parts))

    @precondition(lambda self: self.find("send"))
    @rule(data=st.data())
    def send(self, data: st.DataObject) -> None:
        self.run(self.receive(data.draw(st.sampled_from(self.find("send")))))

    async def receive(self, body: Body) -> None:
        size = body.parts.pop(0)
        if not body.account.try_grow(size):
            body.growing = asyncio.create_task(body.account.grow(size))

    @precondition(lambda self: self.find("seal"))
    @rule(data=st.data())
    def seal(self, data: st.DataObject) -> None:
        data.draw(st.sampled_from(self.find("seal"))).account.seal()

    @precondition(lambda self: self.find("leave"))
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        self.run(self.end(data.draw(st.sampled_from(self.find("leave")))))

    async def end(self, body: Body) -> None:
        self.open.remove(body)
        if body.growing:
            body.growing.cancel()
            await asyncio.wait([body.growing])
        body.account.close()

    @invariant()
    def the_bound_holds_and_nothing_is_lost(self) -> None:
        held = sum(body.account.held_bytes for body in self.open)
        assert self.budget.in_use_bytes == held <= self.MAX_BYTES + self.LARGEST
        assert self.budget.waiting == sum(body.waits for body in self.open)

    @invariant()
    def not_all_wait(self) -> None:
        assert not self.open or not all(body.waits for body in self.open)

    def teardown(self) -> None:
        """As long as clients go on sending, every body comes to its end."""
        while self.open:
            ready = [body for body in self.open if not body.waits]
            assert ready, "all wait for each other"
            for body in ready:
                if body.parts:
                    self.run(self.receive(body))
                else:
                    body.account.seal()
                    self.run(self.end(body))
        assert self.budget.in_use_bytes == 0
        self.runner.close()


TestTraffic = Traffic.TestCase
TestTraffic.settings = settings(max_examples=100, stateful_step_count=50)
