"""One line in the log for each request."""

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson
from starlette._utils import get_route_path
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.http.departure import get_presence
from service.http.inlet import get_inlet
from service.log_lines import REQUEST, shorten
from service.request_facts import STATE, RequestFacts

MAX_PATH_CHARACTERS: Final = 256
MAX_ERROR_CHARACTERS: Final = 512
MAX_ERROR_BYTES: Final = 8192  # beyond those of any error that `replies` writes
NO_STATUS: Final = 500  # what uvicorn, or Starlette around this layer, answers for us
PROBES: Final = frozenset({"/v2/health/live", "/v2/health/ready", "/metrics"})

log = logging.getLogger("limelight.requests")

FORM: Final = vars(logging.LogRecord(log.name, logging.INFO, "", 0, "%s %s %d", None, None))
"""What all records of requests have in common."""


@dataclass(slots=True)
class Exchange:
    """One request and its answer, as they pass.

    Attributes:
        request_bytes: of the body, as far as it was read.
        response_bytes: of the body, as far as it was sent.
        status: of the answer, once it has begun.
        body: its beginning, where the status says that it tells of an error.
        error: what went wrong, where the answer does not say it.
        has_left: whether the client went before its answer was whole.
        is_whole: whether the whole answer was sent.
    """

    request_bytes: int = 0
    response_bytes: int = 0
    status: int | None = None
    body: bytes = b""
    error: str | None = None
    has_left: bool = False
    is_whole: bool = False

    def note_received(self, message: Message) -> None:
        """Note what comes from the client."""
        if message["type"] == "http.request":
            self.request_bytes += len(message.get("body", b""))
        elif not self.is_whole:
            self.has_left = True

    def note_sent(self, message: Message) -> None:
        """Note what goes to the client."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
        elif message["type"] == "http.response.body":
            body = message.get("body", b"")
            self.response_bytes += len(body)
            self.is_whole = not message.get("more_body", False)
            if self.status is not None and self.status >= 400 and len(self.body) < MAX_ERROR_BYTES:
                self.body += body[:MAX_ERROR_BYTES]

    def note_response(self, status: int, parts: Sequence[bytes | memoryview]) -> None:
        """Note a response that is sent as a whole, its body in parts."""
        self.status, self.response_bytes = status, sum(map(len, parts))
        if status >= 400:
            self.body = bytes(parts[0][:MAX_ERROR_BYTES])


class RequestLog:
    """Writes the line when a request has ended, however it ended."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and note what passes."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started_s, exchange = time.perf_counter(), Exchange()
        # Now: a mounted application changes it. Of the bare prefix nothing would be left.
        path = get_route_path(scope) or scope["path"]
        scope.setdefault("state", {})[STATE] = RequestFacts()

        async def receive_noted() -> Message:
            message = await receive()
            exchange.note_received(message)
            return message

        async def send_noted(message: Message) -> None:
            exchange.note_sent(message)
            await send(message)

        try:
            await self._app(scope, receive_noted, send_noted)
        except Exception as fault:
            exchange.error = f"{type(fault).__name__}: {fault}"
            raise
        finally:
            write(scope, exchange, path, (time.perf_counter() - started_s) * 1000)


def write(scope: Scope, exchange: Exchange, path: str, total_ms: float) -> None:
    """Hand one line to the log."""
    status = exchange.status or NO_STATUS
    level = choose_level(path, status)
    if log.isEnabledFor(level):
        fields = collect(scope, exchange, path, total_ms)
        log.handle(make_record(level, (scope["method"], fields["path"], status), fields))


def make_record(
    level: int, arguments: tuple[str, str, int], fields: dict[str, Any]
) -> logging.LogRecord:
    """A record of a request.

    Args:
        level: of it.
        arguments: method, path and status, as its message names them.
        fields: of its line.
    """
    record = logging.LogRecord.__new__(logging.LogRecord)
    created_s = time.time()
    # Its constructor looks for the name of a source file: half of what a line costs.
    record.__dict__.update(
        FORM,
        args=arguments,
        levelno=level,
        levelname=logging.getLevelName(level),
        created=created_s,
        msecs=int(created_s % 1 * 1000),
    )
    setattr(record, REQUEST, fields)
    return record


def choose_level(path: str, status: int) -> int:
    """How much a request matters: probes come every few seconds, faults are ours to mend."""
    if status == NO_STATUS:
        return logging.ERROR
    return logging.DEBUG if status < 400 and path in PROBES else logging.INFO


def collect(scope: Scope, exchange: Exchange, path: str, total_ms: float) -> dict[str, Any]:
    """The fields of a line, in its order; what is not known is left out.

    Neither the query string is among them, which may hold anything, nor the client's address.
    """
    state = scope["state"]
    facts: RequestFacts = state[STATE]
    route, inlet = scope.get("route"), get_inlet(scope)
    asked = scope.get("path_params", {}).get("name")
    fields = {
        "id": state.get("request_id"),
        "method": scope["method"],
        "path": route.path if isinstance(route, Route) else shorten(path, MAX_PATH_CHARACTERS),
        "model": facts.model or (asked and shorten(asked, MAX_PATH_CHARACTERS)),
        "version": facts.version,
        "rows": facts.rows,
        "shapes": facts.shapes or None,
        "graph": facts.graph,
        "queue_ms": facts.queue_ms,
        "compute_ms": facts.compute_ms,
        "total_ms": round(total_ms, 3),
        "status": exchange.status or NO_STATUS,
        "request_bytes": exchange.request_bytes + (inlet.received_bytes if inlet else 0),
        "response_bytes": 0 if scope["method"] == "HEAD" else exchange.response_bytes,
        "key": state.get("key"),
        "left": exchange.has_left or get_presence(scope).has_left or None,
        "error": exchange.error or read_error(exchange.body),
    }
    return {name: value for name, value in fields.items() if value is not None}


def read_error(body: bytes) -> str | None:
    """The text of an error that was answered."""
    if not body:
        return None
    try:
        return shorten(str(orjson.loads(body)["error"]), MAX_ERROR_CHARACTERS)
    except (ValueError, TypeError, KeyError):
        return None
