"""Work for a client that may leave before it is done."""

import asyncio
import time
from collections.abc import Collection, Coroutine, Mapping
from types import TracebackType
from typing import Any, Final, Literal, Self, TypeVar

from starlette.requests import Request

from service.errors import ClientLeftError

Result = TypeVar("Result")
Stage = Literal["head", "body", "work", "encode", "answer"]

MANY: Final = range(2)  # where nobody counts the tasks
STATE: Final = "presence"  # where a request's scope holds it


class Presence:
    """Whether the client of one request is still there.

    The connection says when it has left, and that cancels the task of the request. Two tasks for
    each request, one of them waiting for the departure, cost 12 us; this costs 1.

    A client that closes its side alone, after its request, counts as one that left: what arrives
    is the same (FIN), uvicorn closes the connection on it, and a client that wants its answer has
    no reason to do so.

    Args:
        tasks: of all requests that have no answer yet, this one among them.
        has_company: whether other clients were asking a moment ago.

    Attributes:
        began_ns: when its request began, by `time.perf_counter_ns`.
        has_company: whether other clients were asking when it came.
        stage: what is being done for it, for the count of departures; "work" is all from the body
            to the result.
        has_left: whether it has left.
    """

    # Of the class: every request makes one, and few change any.
    stage: Stage = "work"
    has_left = False
    _task: asyncio.Future[Any] | None = None

    def __init__(self, tasks: Collection[object] = MANY, *, has_company: bool = False) -> None:
        self.began_ns = time.perf_counter_ns()
        self._tasks = tasks
        self.has_company = has_company

    def is_alone(self) -> bool:
        """Whether the server has no other request now, and had none a moment ago."""
        return len(self._tasks) <= 1 and not self.has_company

    def leave(self) -> None:
        """Note that the client has left, and cancel what is done for it; once is enough."""
        if not self.has_left and self._task is not None:
            self._task.cancel()
        self.has_left = True

    def attend(self, work: "asyncio.Future[Any] | None") -> None:
        """From here on a departure cancels `work`, or nothing any more."""
        self._task = work

    def __enter__(self) -> Self:
        """From here on a departure cancels the current task.

        Raises:
            ClientLeftError: if the client has left already.
        """
        if self.has_left:
            raise left()
        self._task = asyncio.current_task()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None
    ) -> None:
        """A cancellation that is the client's departure becomes an error of its request.

        Raises:
            ClientLeftError: if the client left meanwhile.
        """
        task, self._task = asyncio.current_task(), None
        # The task may have been cancelled by the end of the server too: that goes first.
        if self.has_left and kind is asyncio.CancelledError and task and not task.uncancel():
            raise left() from None


def left() -> ClientLeftError:
    """The error for a client that left."""
    return ClientLeftError("the client left before its answer was ready")


def get_presence(scope: Mapping[str, Any]) -> Presence:
    """The presence of the client of a request; of one that stays, where no connection says.

    Args:
        scope: ASGI's, of the request.
    """
    presence = scope.get("state", {}).get(STATE)
    return presence if isinstance(presence, Presence) else Presence()


async def work_while_present(request: Request, work: Coroutine[Any, Any, Result]) -> Result:
    """Await `work`, and cancel it if the client leaves meanwhile.

    Raises:
        ClientLeftError: if the client left.
    """
    try:
        with get_presence(request.scope):
            return await work
    finally:
        work.close()  # which was not begun if the client had left before
