"""A server of the embedded demo, with express in front of its layers or without."""

import asyncio
import json
import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from starlette.types import Scope

from service.answering import answer_v2
from service.app import create_app
from service.http.budget import Account
from service.http.outlet import Outlet
from service.http.prompting import Answerer, Outcome
from service.log_lines import REQUEST
from service.settings import Settings
from service.state import State
from service.terms import Terms, always
from tests.service.http.live_server import LiveServer, read_to_end, serve, wait_until

LOG = "limelight.requests"
# What is another each time, or of the run.
TIMES = ("total_ms", "queue_ms", "compute_ms")
MASKED = ("server-timing", "date")
ALONE = Terms(try_hold=always, is_alone=always)
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class Noted:
    """Notes which requests another answers at once."""

    def __init__(self, answerer: Answerer) -> None:
        self.waiting = 0
        self.answered: list[bool] = []
        self._answerer = answerer
        self.buffers = answerer.buffers

    def open_account(self) -> Account:
        """An account for a body."""
        return self._answerer.open_account()

    def is_for(self, scope: Scope, size_bytes: int) -> bool:
        """Whether it may answer a request."""
        return self._answerer.is_for(scope, size_bytes)

    def answer(self, scope: Scope, body: memoryview, outlet: Outlet, *, is_alone: bool) -> Outcome:
        """Answer a request, or begin to; says whether it did."""
        outcome = self._answerer.answer(scope, body, outlet, is_alone=is_alone)
        self.answered.append(outcome is True)
        return outcome


@dataclass(frozen=True)
class Told:
    """All of an answer that may not depend on who gave it.

    Attributes:
        status: of the answer.
        headers: of it, sorted, without the times.
        body: of it.
        line: of the request in the log, without the times.
    """

    status: int
    headers: list[tuple[str, str]]
    body: bytes
    line: dict[str, Any]


class Lines(logging.Handler):
    """The lines of requests in the log."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.lines: list[dict[str, Any]] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the fields of a line."""
        fields = dict(getattr(record, REQUEST), level=record.levelname)
        self.lines.append({name: fields[name] for name in fields if name not in TIMES})


@dataclass
class Front:
    """A server that runs.

    Attributes:
        server: with our connections.
        state: of its application.
        noted: what was answered at once.
        log: of the requests of all servers.
    """

    server: LiveServer
    state: State
    noted: Noted
    log: Lines = field(default_factory=Lines)

    def ask(self, request: bytes) -> Told:
        """What a request, whose connection is its own, comes to."""
        self.log.lines.clear()
        with self.server.connect() as client:
            client.sendall(request)
            answer = read_to_end(client)
        head, _, body = answer.removeprefix(CONTINUE).partition(b"\r\n\r\n")
        status, *headers = head.decode("latin-1").split("\r\n")
        wait_until(lambda: len(self.log.lines) == 1)
        pairs = [(name, text) for name, _, text in (each.partition(": ") for each in headers)]
        kept = sorted(pair for pair in pairs if pair[0] not in MASKED)
        assert "date" in dict(pairs)
        return Told(int(status.split()[1]), kept, body, self.log.lines[0])

    def expect(self, *answered: bool) -> None:
        """Wait until so many requests were whole, and answered at once or not."""
        wait_until(lambda: self.noted.answered == [*answered])

    def count(self) -> dict[str, str]:
        """The metrics that count, without those that measure."""
        samples = [
            line.rpartition(" ") for line in self.state.metrics.render().decode().split("\n")
        ]
        kinds = re.compile(r"[^#].*_(total|count|success|failure)(\{.*)?")
        return {name: number for name, _, number in samples if kinds.fullmatch(name)}


async def open_graphs(state: State) -> None:
    """Let the model compute with weights and without: from then on that takes no time."""
    for wanted in (["output"], ["output", "attention_weights"]):
        entry = {"name": "query", "shape": [2, 5, 6], "datatype": "FP32", "data": [0.5] * 60}
        outputs = [{"name": name} for name in wanted]
        body = json.dumps({"inputs": [entry], "outputs": outputs}).encode()
        await answer_v2(state, state.find_model("demo"), body, [], ALONE)


@contextmanager
def open_front(settings: Settings, *, is_express: bool = True) -> Iterator[Front]:
    """A server of the demo that is ready."""
    app = create_app(settings)
    state: State = app.state.service
    state.scheduler.start()
    state.load_models()
    state.phase = "ready"
    asyncio.run(open_graphs(state))
    noted, logger = Noted(app.state.express.prompt), logging.getLogger(LOG)
    level = logger.level
    try:
        with serve(
            app.state.express if is_express else app, answerer=noted if is_express else None
        ) as server:
            front = Front(server, state, noted)
            logger.setLevel(logging.INFO)
            logger.addHandler(front.log)
            yield front
    finally:
        logger.removeHandler(front.log)
        logger.setLevel(level)
        state.close()
