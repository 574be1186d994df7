"""Answers requests as soon as their bodies are whole, and notes which."""

import socket

from starlette.types import Scope

from service.http.budget import Account, Budget
from service.http.buffer_pool import BufferPool
from service.http.outlet import Outlet
from tests.service.http.live_server import ask, read_answer, wait_until

PATH = "/"
MARK = (b"answered", b"at once")
BODY = b"a body of 21 bytes..."
HEAD = ask(PATH, BODY)[: -len(BODY)]


class Prompter:
    """Answers how many bytes came.

    Args:
        size_bytes: of each answer; as long as its number where 0.
        is_willing: whether it answers what it is asked.

    Attributes:
        waiting: how many requests wait for their bodies, and hold them on no account.
        buffers: memory for bodies.
        budget: of bodies that come past the parser.
        accounts: that were opened on it.
        asked: the bodies of the requests that it was asked to answer, and whether each was alone.
    """

    def __init__(self, size_bytes: int = 0, *, is_willing: bool = True) -> None:
        self.waiting = 0
        self.buffers = BufferPool()
        self.budget = Budget("bodies", "BODIES", 2**24, 2**20, 60)
        self.accounts: list[Account] = []
        self.asked: list[tuple[bytes, bool]] = []
        self._size_bytes = size_bytes
        self._is_willing = is_willing

    def open_account(self) -> Account:
        """An account for a body."""
        self.accounts.append(self.budget.open())
        return self.accounts[-1]

    @property
    def is_waiting(self) -> bool:
        """Whether a request waits for the rest of its body."""
        return self.waiting > 0 or not all(account.is_closed for account in self.accounts)

    def is_for(self, scope: Scope, size_bytes: int) -> bool:
        """Whether it may answer a request."""
        return bool(scope["path"] == PATH)

    def answer(self, scope: Scope, body: memoryview, outlet: Outlet, *, is_alone: bool) -> bool:
        """Answer a request; says whether it did."""
        assert scope["path"] == PATH
        self.asked.append((bytes(body), is_alone))
        if self._is_willing and is_alone:
            text = b"%d" % len(body) + bytes(self._size_bytes)
            outlet.answer(200, [(b"content-length", b"%d" % len(text)), MARK], (text,))
        return self._is_willing and is_alone


def read_whole(client: socket.socket) -> tuple[bytes, bool]:
    """The text of an answer, and whether it was given at once."""
    status, headers, text = read_answer(client)
    assert status == 200
    return text, "answered" in headers


def hold(client: socket.socket, prompter: Prompter, part: bytes = BODY[:5]) -> None:
    """Send a part of a request, and wait until it is held."""
    client.sendall(HEAD + part)
    wait_until(lambda: prompter.is_waiting)
