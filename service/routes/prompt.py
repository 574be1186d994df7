"""Small requests, answered in the very call that brings their last byte.

A task for a request, a coroutine for each of its steps and a turn of the event loop between them
cost a tenth of a millisecond: a third of what 1x16 takes in all (measured). A request that
would wait for nothing, as it is small and no other is there, needs none of them.
"""

import logging
import time
from typing import Final

from starlette.responses import Response
from starlette.types import Scope

from service.answering import compute_here, finish, prepare_v2
from service.errors import ServiceError
from service.http.compression import VARY, choose_coding
from service.http.fields import get_fields
from service.http.holdings import SMALL_BYTES
from service.http.inlet import get_inlet
from service.http.outlet import Outlet
from service.http.replies import render_error
from service.http.request_id import FIELD, choose_id
from service.http.request_log import Exchange, write
from service.http.security_headers import NO_SNIFFING
from service.inference import Answer
from service.protocol.v2_answer import encode_answer
from service.protocol.v2_layout import V2Request
from service.request_facts import STATE as FACTS
from service.request_facts import RequestFacts, note_answer
from service.routes.answers import get_parts, respond
from service.routes.entrance import Entrance
from service.routes.infer import LENGTH_FIELD, MODEL, answer_route
from service.state import State
from service.terms import Terms, always
from service.watch import Watch

# Two copies of what the transport of a connection keeps without being counted.
MAX_HELD_BYTES: Final = 2 * SMALL_BYTES
NOW: Final = Terms(try_hold=always, is_alone=always)

log = logging.getLogger("limelight")


class Prompt:
    """Answers requests of the Open Inference Protocol at once, where nothing has to be waited for.

    Args:
        state: of the application.
        entrance: finds them.

    Attributes:
        is_waiting: whether one of them waits for its body.
    """

    def __init__(self, state: State, entrance: Entrance) -> None:
        self._state = state
        self._entrance = entrance
        self._max_bytes = state.settings.max_request_bytes
        self._is_logged = state.settings.log_requests
        self.is_waiting = False

    def is_for(self, scope: Scope) -> bool:
        """Whether a request may be answered at once, by its head.

        Its model is found now: that it goes, or the server stops, while the body comes, is no
        matter for a request that was taken.
        """
        inlet = get_inlet(scope)
        if inlet is None or inlet.size_bytes > self._max_bytes:
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
        return True

    def answer(self, scope: Scope, body: memoryview, outlet: Outlet, *, is_alone: bool) -> bool:
        """Answer a request whose body is whole.

        Args:
            scope: ASGI's, of a request that `is_for` this.
            body: of the request.
            outlet: of the request.
            is_alone: whether no other request is there.

        Returns:
            whether it is answered; one that is not, for whatever reason, has lost nothing.
        """
        started_s, state = time.perf_counter(), scope["state"]
        try:
            response = self._compute(scope, body) if is_alone else None
        except ServiceError:
            return False  # which is said, and counted, where all errors are
        except Exception:
            log.exception("a request was not answered at once")
            return False
        if response is None:
            return False
        del state[MODEL]  # see `answer_route`
        exchange = Exchange(request_bytes=len(body), is_whole=True)
        parts = get_parts(response)
        exchange.note_response(response.status_code, parts)
        state["request_id"] = request_id = choose_id(get_fields(scope))
        added = (NO_SNIFFING, (FIELD, request_id.encode()))
        outlet.answer(response.status_code, (*response.raw_headers, *added), parts)
        if self._is_logged:
            write(scope, exchange, scope["path"], (time.perf_counter() - started_s) * 1000)
        return True

    def _compute(self, scope: Scope, body: memoryview) -> Response | None:
        """The response; nothing where it has to be waited for.

        Raises:
            ServiceError: if the request is at fault.
        """
        started_ns, state, fields = time.perf_counter_ns(), self._state, get_fields(scope)
        lengths = fields.list(LENGTH_FIELD)
        if choose_coding(fields.list(b"accept-encoding")) is not None:
            return None
        work = prepare_v2(state, scope["state"][MODEL], body, lengths)
        if work.held_bytes > MAX_HELD_BYTES or (timed := compute_here(state, work, NOW)) is None:
            return None
        answer = finish(state, work.model, timed, started_ns)
        return self._encode(scope, work.asked, answer)

    def _encode(self, scope: Scope, asked: V2Request, answer: Answer) -> Response:
        """The response; from here on an error is one, too: the model has run."""
        metrics, scope["state"][FACTS] = self._state.metrics, RequestFacts()
        try:
            with Watch(metrics, answer.model, answer.version, answer.started_ns) as watch:
                content, headers = encode_answer(answer, asked.id, asked.outputs)
                metrics.count_answer(answer, watch.elapsed_ns)
        except ServiceError as error:
            return render_error(str(error), error.status, dict(error.headers))
        note_answer(scope["state"], asked.inference, answer)
        return respond(content, headers | VARY, answer)
