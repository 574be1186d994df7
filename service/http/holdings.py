"""The bytes that requests and their answers hold, within the bounds of the settings."""

from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

from starlette.requests import Request

from service.http.body import read_body, too_large
from service.http.budget import Budget
from service.http.buffer_pool import KEPT_BYTES, BufferPool
from service.http.departure import Presence
from service.http.fields import get_fields
from service.http.inlet import Inlet, get_inlet
from service.settings import Settings
from service.terms import Terms

CODED: Final = frozenset({b"content-encoding"})
SPARE_BYTES: Final = 2**24  # for the next bodies, however many are there
SMALL_BYTES: Final = 65536  # as many as the transport of a connection keeps without being counted


class Holdings:
    """What all requests of a process hold together.

    Bodies and answers have budgets of their own: a request that holds its body waits for room for
    its answer, and answers go without waiting for anything but their clients, whose time is
    bounded. With one budget requests could wait for each other.

    Attributes:
        bodies: bytes of request bodies, compressed ones after inflating.
        answers: bytes of answers until their clients took them.
        buffers: memory for bodies.
    """

    def __init__(self, settings: Settings) -> None:
        self._max_bytes = settings.max_request_bytes
        self._timeout_s = settings.body_timeout_s
        self.bodies = Budget(
            "request bodies",
            "LIMELIGHT_MAX_BODY_BYTES_IN_FLIGHT",
            settings.max_body_bytes_in_flight,
            settings.max_request_bytes,
            settings.body_timeout_s,
        )
        self.answers = Budget(
            "answers",
            "LIMELIGHT_MAX_ANSWER_BYTES_IN_FLIGHT",
            settings.max_answer_bytes_in_flight,
            0,
            settings.body_timeout_s,
        )
        self.buffers = BufferPool(self._find_room)

    def _find_room(self) -> int:
        """How much may wait for the bodies to come: what is there has to fit beside it."""
        return min(KEPT_BYTES, max(SPARE_BYTES, self.bodies.room_bytes))

    def open(self) -> "Held":
        """What one request holds."""
        return Held(self, self._max_bytes, self._timeout_s)


class Held:
    """What one request holds; given back at the end of its ``with`` block."""

    def __init__(self, holdings: Holdings, max_bytes: int, timeout_s: float) -> None:
        self._body = holdings.bodies.open()
        self._answer = holdings.answers.open()
        self._buffers = holdings.buffers
        self._max_bytes = max_bytes
        self._timeout_s = timeout_s
        self._is_answer_kept = False
        self._inlet: Inlet | None = None

    async def read(self, request: Request) -> bytes | memoryview:
        """Read a body, and hold it.

        Raises:
            ServiceError: as `read_body`.
        """
        inlet = get_inlet(request.scope)
        if inlet is not None and not get_fields(request.scope).has_any(CODED):
            if inlet.size_bytes > self._max_bytes:
                raise too_large(f"{inlet.size_bytes} bytes", self._max_bytes)
            self._inlet = inlet
            return await inlet.read(self._body, self._timeout_s, self._buffers)
        return await read_body(
            request, self._max_bytes, timeout_s=self._timeout_s, account=self._body
        )

    async def hold_arrays(self, size_bytes: int) -> None:
        """Hold what a compressed body holds, beside the body itself.

        Raises:
            UnavailableError: if there is no room in time.
        """
        await self._body.grow(size_bytes)
        self._body.seal()

    def try_hold_answer(self, size_bytes: int) -> bool:
        """Hold the bytes of an answer that is to be computed, if that needs no waiting."""
        if size_bytes <= SMALL_BYTES:
            return True
        if not self._answer.try_grow(size_bytes):
            return False
        self._answer.seal()
        return True

    async def hold_answer(self, size_bytes: int) -> None:
        """Hold the bytes of an answer that is to be computed.

        Raises:
            UnavailableError: if there is no room in time.
        """
        # Small ones wait for nobody: a large one that waits would let them wait behind it.
        if not self.try_hold_answer(size_bytes):
            await self._answer.grow(size_bytes)
            self._answer.seal()

    def make_terms(self, presence: Presence) -> Terms:
        """The terms on which the request of a client is answered."""
        return Terms(self.hold_answer, self.try_hold_answer, presence.is_alone)

    def shrink_answer(self, size_bytes: int) -> None:
        """Hold no more than what was written; the tensors are gone."""
        self._answer.shrink(size_bytes)

    def keep_answer(self) -> Callable[[], None]:
        """Hold the answer beyond the block.

        Returns:
            what gives it back.
        """
        self._is_answer_kept = True
        return self._answer.close

    def __enter__(self) -> Self:
        """What is held."""
        return self

    def __exit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        """Give back the body and, unless it is kept, the answer."""
        self._body.close()
        if self._inlet is not None:
            self._inlet.give_back()
        if not self._is_answer_kept:
            self._answer.close()
