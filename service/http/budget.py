"""A bound of the bytes that all requests hold together."""

import asyncio
from bisect import insort
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from service.errors import UnavailableError


class Account:
    """Bytes that are held for one request.

    Open it when the request begins: its age decides who goes first. Close it, or leave its
    context, when nothing of the request is in memory any more.

    Attributes:
        age: number in the order of opening.
        held_bytes: what it holds.
        is_whole: whether the request has come to its end, so that it will not ask for more.
        is_closed: whether everything was given back.
    """

    __slots__ = ("_budget", "age", "held_bytes", "is_closed", "is_whole")

    def __init__(self, budget: "Budget", age: int) -> None:
        self._budget = budget
        self.age = age
        self.held_bytes = 0
        self.is_whole = False
        self.is_closed = False

    def try_grow(self, size_bytes: int) -> bool:
        """Hold more, if that needs no waiting.

        Returns:
            whether it is held.
        """
        return self._budget.try_take(self, size_bytes)

    async def grow(self, size_bytes: int) -> None:
        """Hold more; wait for room if there is none.

        Raises:
            UnavailableError: if there is still none after the time to wait.
        """
        if not self._budget.try_take(self, size_bytes):
            await self._budget.take(self, size_bytes)

    def seal(self) -> None:
        """Say that the request is whole: it will end, and give back what it holds."""
        self._budget.seal(self)

    def shrink(self, size_bytes: int) -> None:
        """Give back what is held beyond `size_bytes`."""
        if self.held_bytes > size_bytes > 0:
            self._budget.give_back(self, self.held_bytes - size_bytes)

    def close(self) -> None:
        """Give everything back; a second time does nothing."""
        self._budget.close(self)

    def __enter__(self) -> Self:
        """The account itself."""
        return self

    def __exit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        """Give everything back."""
        self.close()


@dataclass(slots=True, eq=False)
class Claim:
    """An account that waits for room."""

    account: Account
    size_bytes: int
    granted: asyncio.Future[None]


class Budget:
    """Lends bytes to requests; who finds no room waits, the oldest request first.

    For one event loop. Bodies that are half read could use up the budget with none of them able
    to end. Where that is so, the oldest request that waits may overdraw, and no other until it has
    given everything back: it alone can then come to its end. A request that holds bytes alone is
    never kept waiting, whatever its size.

    Args:
        what: the bytes are of, for the text of a refusal.
        setting: that bounds them.
        max_bytes: held by all requests together.
        overdraft_bytes: beyond that, for the one request that may overdraw; enough for the largest
            body, or it might not come to its end.
        timeout_s: for which a request waits for room.

    Attributes:
        opened: accounts so far.
    """

    def __init__(
        self, what: str, setting: str, max_bytes: int, overdraft_bytes: int, timeout_s: float
    ) -> None:
        self._what = what
        self._setting = setting
        self._max_bytes = max_bytes
        self._overdraft_bytes = overdraft_bytes
        self._timeout_s = timeout_s
        self.opened = 0
        self._claims: list[Claim] = []  # oldest account first
        self._whole_accounts = 0  # those that hold bytes and will give them back by themselves
        self._overdrawer: Account | None = None
        self._in_use_bytes = 0

    @property
    def in_use_bytes(self) -> int:
        """What is held now."""
        return self._in_use_bytes

    @property
    def room_bytes(self) -> int:
        """What may be lent still; 0 where one has overdrawn."""
        return max(0, self._max_bytes - self._in_use_bytes)

    @property
    def waiting(self) -> int:
        """How many requests wait for room."""
        return len(self._claims)

    def open(self) -> Account:
        """An account for a request that begins now."""
        self.opened += 1
        return Account(self, self.opened)

    def try_take(self, account: Account, size_bytes: int) -> bool:
        """Lend bytes to an account, unless it has to wait.

        Returns:
            whether they were lent.
        """
        if account.is_closed:  # what is lent to it would never come back
            raise RuntimeError("the account is closed")
        if account.is_whole:  # it was not: others may have to overdraw, as this one may wait
            self._unseal(account)
        if not self._has_room(account, size_bytes):
            return False
        self._in_use_bytes += size_bytes
        account.held_bytes += size_bytes
        return True

    async def take(self, account: Account, size_bytes: int) -> None:
        """Lend bytes to an account as soon as there is room.

        Raises:
            UnavailableError: if there is none in time.
        """
        claim = Claim(account, size_bytes, asyncio.get_running_loop().create_future())
        insort(self._claims, claim, key=lambda each: each.account.age)
        self._serve()
        try:
            async with asyncio.timeout(self._timeout_s):
                await claim.granted
        except TimeoutError:
            raise self._refusal(size_bytes) from None
        finally:
            if claim in self._claims:
                self._claims.remove(claim)
                self._serve()  # those behind it may need less

    def seal(self, account: Account) -> None:
        """Note that an account will ask for no more."""
        if not account.is_whole and not account.is_closed:
            account.is_whole = True
            self._whole_accounts += account.held_bytes > 0

    def give_back(self, account: Account, size_bytes: int) -> None:
        """Take back a part of what an account holds, and not all of it."""
        account.held_bytes -= size_bytes
        self._in_use_bytes -= size_bytes
        self._serve()

    def close(self, account: Account) -> None:
        """Take back what an account holds."""
        if account.is_closed:
            return
        for claim in [each for each in self._claims if each.account is account]:
            self._claims.remove(claim)
            claim.granted.cancel()
        if account.is_whole:
            self._unseal(account)
        account.is_closed = True
        self._in_use_bytes -= account.held_bytes
        account.held_bytes = 0
        if self._overdrawer is account:
            self._overdrawer = None
        self._serve()

    def _unseal(self, account: Account) -> None:
        account.is_whole = False
        self._whole_accounts -= account.held_bytes > 0

    def _has_room(self, account: Account, size_bytes: int) -> bool:
        claims = self._claims
        fits = self._in_use_bytes + size_bytes <= self._max_bytes
        # The one that may overdraw goes before older ones: they wait for it.
        if self._overdrawer is account:
            return fits or self._may_overdraw(account, size_bytes)
        if claims and claims[0].account.age < account.age:
            return False
        if fits:
            return True
        if self._overdrawer is None and self._may_overdraw(account, size_bytes):
            self._overdrawer = account
            return True
        return False

    def _may_overdraw(self, account: Account, size_bytes: int) -> bool:
        if self._in_use_bytes == account.held_bytes:  # nobody else holds any
            return True
        most_bytes = self._max_bytes + self._overdraft_bytes
        return not self._whole_accounts and self._in_use_bytes + size_bytes <= most_bytes

    def _serve(self) -> None:
        """Lend to those that wait, none before an older one."""
        for claim in self._claims:
            if claim.account is self._overdrawer:
                self._grant(claim)
                break
        while self._claims and self._grant(self._claims[0]):
            pass

    def _grant(self, claim: Claim) -> bool:
        if not self.try_take(claim.account, claim.size_bytes):
            return False
        self._claims.remove(claim)
        # One that waited too long in this very moment gives it back with its account.
        if not claim.granted.done():
            claim.granted.set_result(None)
        return True

    def _refusal(self, size_bytes: int) -> UnavailableError:
        return UnavailableError(
            f"{self._in_use_bytes} bytes of {self._what} are held already, no room for "
            f"{size_bytes} more within {self._max_bytes} ({self._setting}) after "
            f"{self._timeout_s:g} s; try again later"
        )
