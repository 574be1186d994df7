"""Requests answered without a task for each.

A task for a request, a coroutine for each of its steps and a turn of the event loop between them
cost a tenth of a millisecond: a third of what 1x16 takes in all (measured). A small request that
is alone waits for nothing: it is answered in the very call that brings its last byte. Any other
waits for a thread, and for nothing else.
"""

import logging
from typing import Final

from starlette.types import Scope

from service.answering import Work, compute_here, count_text_bytes, finish, prepare_v2
from service.engine.machine import count_cores
from service.errors import ServiceError
from service.http.budget import Account
from service.http.compression import choose_coding
from service.http.fields import get_fields
from service.http.holdings import SMALL_BYTES
from service.http.inlet import Inlet, get_inlet
from service.http.outlet import Outlet
from service.http.prompting import Outcome
from service.protocol.v2_layout import V2Request
from service.routes.entrance import Entrance
from service.routes.infer import LENGTH_FIELD, MODEL, answer_route
from service.routes.pending import Pending
from service.routes.prompt_reply import PromptReply
from service.state import OFFLOAD_BINARY_BYTES, State
from service.terms import Terms, always

# Two copies of what the transport of a connection keeps without being counted.
MAX_HELD_BYTES: Final = 2 * SMALL_BYTES
# Of a text that nobody waits for but a probe of the server's health: 1 ms of writing.
MAX_ALONE_TEXT_BYTES: Final = 2**20
NOW: Final = Terms(try_hold=always, is_alone=always)

log = logging.getLogger("limelight")


class Prompt:
    """Answers requests of the Open Inference Protocol, where only a thread has to be waited for.

    Args:
        state: of the application.
        entrance: finds them.

    Attributes:
        waiting: how many of them wait for their bodies, and hold them on no account.
        buffers: memory for bodies.
        open_account: opens an account for a body.
    """

    def __init__(self, state: State, entrance: Entrance) -> None:
        self._state = state
        self._entrance = entrance
        self._max_bytes = state.settings.max_request_bytes
        # With one core a thread would only take turns with the event loop.
        self._has_one_core = count_cores(state.settings.workers) == 1
        self.waiting = 0
        self.buffers = state.holdings.buffers
        self.open_account = state.holdings.bodies.open

    def is_for(self, scope: Scope, size_bytes: int) -> bool:
        """Whether a request may be answered so, by its head.

        Its model is found now: that it goes, or the server stops, while the body comes, is no
        matter for a request that was taken.
        """
        if size_bytes > self._max_bytes or size_bytes >= OFFLOAD_BINARY_BYTES:
            return False
        if choose_coding(get_fields(scope).list(b"accept-encoding")) is not None:
            return False
        try:
            if self._entrance.find(scope) is not answer_route:
                return False
            scope["state"][MODEL] = self._state.find_model(**scope["path_params"])
        except ServiceError:
            return False
        except Exception:
            log.exception("a request was not held")
            return False
        # Else it is refused before its body has come.
        return self._state.scheduler.has_room()

    def answer(self, scope: Scope, body: memoryview, outlet: Outlet, *, is_alone: bool) -> Outcome:
        """Answer a request whose body is whole, or begin to.

        Args:
            scope: ASGI's, of a request that `is_for` this.
            body: of the request.
            outlet: of the request.
            is_alone: whether no other request is there.

        Returns:
            whether it is answered, or what its answer waits for; one that is not answered, for
            whatever reason, has lost nothing.
        """
        reply = PromptReply(self._state, scope, outlet)
        try:
            work = self._prepare(scope, body, is_alone=is_alone)
            if work is None:
                return False
            is_small = work.held_bytes <= MAX_HELD_BYTES
            may_be_here = is_small and (is_alone or self._has_one_core)
            timed = compute_here(self._state, work, NOW) if may_be_here else None
            if timed is None:
                return self._queue(reply, work, is_alone=is_alone)
        except ServiceError:
            return False  # which is said, and counted, where all errors are
        except Exception:
            log.exception("a request was not answered at once")
            return False
        reply.send(lambda: finish(self._state, work.model, timed, reply.started_ns), work.asked)
        return True

    def _prepare(self, scope: Scope, body: memoryview, *, is_alone: bool) -> Work[V2Request] | None:
        """Read and check a request; nothing where that, or its answer, takes too long here.

        Raises:
            ServiceError: if the request is at fault.
        """
        state, lengths = self._state, get_fields(scope).list(LENGTH_FIELD)
        text_bytes = count_text_bytes(len(body), lengths)
        if not state.is_quick(len(body), text_bytes, is_alone=is_alone):
            return None
        work = prepare_v2(state, scope["state"][MODEL], body, lengths)
        most_bytes = MAX_ALONE_TEXT_BYTES if is_alone else MAX_HELD_BYTES
        is_large_text = work.asked.is_text and work.held_bytes > most_bytes
        return None if is_large_text or work.schedule.timeout_us else work

    def _queue(self, reply: PromptReply, work: Work[V2Request], *, is_alone: bool) -> Outcome:
        """Let a thread compute a request; the outcome is false where there is no room for it.

        Raises:
            UnavailableError: if the queue is full.
        """
        account, inlet = self._hold_answer(work.held_bytes), get_inlet(reply.scope)
        if account is None or inlet is None:
            return False
        reply.answer_account = account
        outcome: Outcome = False
        try:
            if self._hold_body(inlet):
                outcome = Pending(self._state, reply, work).start(is_alone=is_alone)
        finally:
            if not outcome:
                account.close()
                # Nobody else gives back what is held for a body that came through the parser.
                if not inlet.is_begun:
                    inlet.give_back()
        return outcome

    def _hold_answer(self, size_bytes: int) -> Account | None:
        """An account on which an answer is held; nothing where there is no room for it."""
        account = self._state.holdings.answers.open()
        # Small ones wait for nobody, and are not counted.
        if size_bytes > SMALL_BYTES:
            if not account.try_grow(size_bytes):
                return None
            account.seal()
        return account

    def _hold_body(self, inlet: Inlet) -> bool:
        """Hold the body of a request on an account; says whether there is room for it."""
        if inlet.account is None:
            account = self.open_account()
            if not account.try_grow(inlet.size_bytes):
                account.close()
                return False
            inlet.hold(account)
        inlet.seal()
        return True
