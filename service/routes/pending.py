"""One request that a thread computes while nothing but a callback waits for it."""

import asyncio
import logging
from functools import partial

from service.answering import Work, finish
from service.deadline import too_long
from service.engine.job import Job, Timed
from service.engine.runner import Computed
from service.engine.signature import Prepared
from service.http.departure import get_presence
from service.inference import Answer
from service.protocol.v2_layout import V2Request
from service.routes.prompt_reply import PromptReply
from service.state import State

Computation = asyncio.Future[Timed[Computed]]

log = logging.getLogger("limelight")


class Pending:
    """Queues a request, and answers it when its outcome is known.

    Args:
        state: of the application.
        reply: to the request, whose body and answer are held.
        work: of the request.
    """

    def __init__(self, state: State, reply: PromptReply, work: Work[V2Request]) -> None:
        self._state = state
        self._reply = reply
        self._work = work
        self._presence = get_presence(reply.scope)
        self._job: Job[Prepared, Computed] | None = None
        self._timer: asyncio.TimerHandle | None = None

    def start(self, *, is_alone: bool) -> Computation:
        """Queue it.

        Args:
            is_alone: whether no other request is there.

        Returns:
            what will be its outcome; to cancel that is to give up.

        Raises:
            UnavailableError: if the queue is full.
        """
        work, timeout_ms = self._work, self._state.settings.request_timeout_ms
        self._job, outcome = self._state.scheduler.enqueue(
            work.model.lane, work.prepared, work.schedule, is_alone=is_alone
        )
        if timeout_ms:
            loop = outcome.get_loop()
            self._timer = loop.call_later(timeout_ms / 1000, self._give_up, outcome)
        self._presence.attend(outcome)
        outcome.add_done_callback(self._finish)
        return outcome

    def _give_up(self, outcome: Computation) -> None:
        if not outcome.done():
            self._withdraw()
            outcome.set_exception(too_long(self._state.settings.request_timeout_ms))

    def _finish(self, outcome: Computation) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._presence.attend(None)
        if outcome.cancelled():
            self._withdraw()
        # It knows the outcome, that an error, and the error's traceback this.
        self._job = None
        asked, find_answer = self._work.asked, partial(self._find_answer, outcome)
        del outcome  # the same: the traceback keeps this frame, too
        try:
            self._reply.send(find_answer, asked)
        except Exception:  # or nobody would ever end its connection
            log.exception("an answer could not be sent")
            self._reply.abandon()

    def _withdraw(self) -> None:
        if self._job is not None:
            self._state.scheduler.withdraw(self._job)

    def _find_answer(self, outcome: Computation) -> Answer:
        """The answer of the model.

        Raises:
            BaseException: whatever the outcome is instead.
        """
        try:
            timed = self._state.scheduler.collect(outcome)
        finally:
            del outcome
        return finish(self._state, self._work.model, timed, self._reply.started_ns)
