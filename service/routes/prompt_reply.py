"""The answer to a request that has no task: what express and its layers would do to it."""

import asyncio
import logging
import time
from collections.abc import Callable

from starlette.responses import Response
from starlette.types import Scope

from service.errors import ServiceError
from service.http.budget import Account
from service.http.compression import VARY
from service.http.cutoff import stop_early
from service.http.departure import get_presence, left
from service.http.fields import get_fields
from service.http.inlet import get_inlet
from service.http.outlet import Outlet
from service.http.replies import render_error, render_fault
from service.http.request_id import FIELD, choose_id
from service.http.request_log import Exchange, write
from service.http.security_headers import NO_SNIFFING
from service.inference import Answer
from service.protocol.v2_answer import encode_answer
from service.protocol.v2_layout import V2Request
from service.request_facts import STATE as FACTS
from service.request_facts import RequestFacts, note_answer
from service.routes.answers import BUFFERED_BYTES, get_parts, respond
from service.routes.infer import MODEL
from service.state import State
from service.watch import Watch

log = logging.getLogger("limelight")


class PromptReply:
    """Writes the answer to one request, counts how it ended, and hands its line to the log.

    Args:
        state: of the application.
        scope: ASGI's, of the request whose body is whole; its model is noted in it.
        outlet: of the request.

    Attributes:
        scope: of the request.
        started_ns: when its body was whole, by `time.perf_counter_ns`.
        answer_account: on which the answer is held until the client has taken it, if it is large.
    """

    def __init__(self, state: State, scope: Scope, outlet: Outlet) -> None:
        self._state = state
        self._outlet = outlet
        self._sending: asyncio.Task[None] | None = None
        self.scope = scope
        self.started_ns = time.perf_counter_ns()
        self.answer_account: Account | None = None

    def send(self, find_answer: Callable[[], Answer], asked: V2Request) -> None:
        """Send an answer, or the error that comes of it.

        Args:
            find_answer: gives it, or raises.
            asked: of the request.
        """
        state, exchange = self.scope["state"], Exchange()
        state[FACTS] = RequestFacts()
        # Taken out: a connection keeps its last scope, and would keep a model that was unloaded.
        model = state.pop(MODEL)
        watch = Watch(self._state.metrics, model.name, model.version, self.started_ns)
        try:
            with watch:
                response = self._render(find_answer(), asked, watch)
        except ServiceError as error:
            response = render_error(str(error), error.status, dict(error.headers))
        except asyncio.CancelledError:
            response = self._render_cancelled()
        except Exception as fault:
            log.exception("a request failed")
            exchange.error = f"{type(fault).__name__}: {fault}"
            response = render_fault()
            self._outlet.close_after()
        finally:
            # It may know the error, whose traceback keeps this frame: a circle.
            del find_answer
        self._let_go_of_body(exchange)
        self._write(exchange, response)

    def abandon(self) -> None:
        """End the connection of a request whose answer could not be made or written."""
        if self.answer_account is not None:
            self.answer_account.close()
        self._outlet.abort()

    def _render(self, answer: Answer, asked: V2Request, watch: Watch) -> Response:
        content, headers = encode_answer(answer, asked.id, asked.outputs)
        watch.metrics.count_answer(answer, watch.elapsed_ns)
        note_answer(self.scope["state"], asked.inference, answer)
        return respond(content, headers | VARY, answer)

    def _render_cancelled(self) -> Response:
        if not get_presence(self.scope).has_left:
            return stop_early()
        error = left()
        return render_error(str(error), error.status, dict(error.headers))

    def _let_go_of_body(self, exchange: Exchange) -> None:
        inlet = get_inlet(self.scope)
        if inlet is not None:
            # Of a body that went through the parser nothing was received here.
            exchange.request_bytes = inlet.size_bytes - inlet.received_bytes
            inlet.release()

    def _write(self, exchange: Exchange, response: Response) -> None:
        scope, status, parts = self.scope, response.status_code, get_parts(response)
        exchange.note_response(status, parts)
        request_id = choose_id(get_fields(scope))
        scope["state"]["request_id"] = request_id
        headers = (*response.raw_headers, NO_SNIFFING, (FIELD, request_id.encode()))
        if exchange.response_bytes <= BUFFERED_BYTES:
            self._outlet.answer(status, headers, parts)
            self._end(exchange)
            return
        if self.answer_account is not None:
            self.answer_account.shrink(exchange.response_bytes)
        if self._outlet.begin(status, headers, parts):
            self._end(exchange)
        else:
            # Until the client has taken it nobody waits for more than that, and a server that stops
            # waits for its connection: it counts among no tasks.
            loop = asyncio.get_running_loop()
            self._sending = loop.create_task(self._await_taken(exchange))

    async def _await_taken(self, exchange: Exchange) -> None:
        """Wait until the client has taken nearly all of a large answer."""
        try:
            await self._outlet.end()
        finally:
            self._end(exchange)
            self._sending = None

    def _end(self, exchange: Exchange) -> None:
        if self.answer_account is not None:
            self.answer_account.close()
        if self._state.settings.log_requests:
            elapsed_ms = (time.perf_counter_ns() - get_presence(self.scope).began_ns) / 1e6
            write(self.scope, exchange, self.scope["path"], elapsed_ms)
