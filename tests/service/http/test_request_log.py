"""One line in the log for each request, however it ends."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.types import Message, Receive, Scope, Send

from service.http.request_log import RequestLog, make_record
from service.inference import Answer, Inference, Times
from service.log_lines import REQUEST
from service.request_facts import note_answer

QUERY = np.zeros((2, 4, 6), np.float32)
TIMES = dict.fromkeys(("created", "msecs", "relativeCreated"), 0)  # of a record
ANSWER = Answer({"output": QUERY}, "fused_bias", "demo", "3", times=Times(queue_ns=1_500_000))
Fields = dict[str, Any]
Ask = Callable[..., Awaitable[Fields]]


async def infer(request: Request) -> Response:
    await request.body()
    note_answer(request.scope["state"], Inference({"query": QUERY}), ANSWER)
    return Response(b"answer")


async def refuse(_: Request) -> Response:
    return JSONResponse({"error": "what came\nwhat was expected"}, 400)


async def refuse_in_another_form(_: Request) -> Response:
    return PlainTextResponse("no", 415)


async def stream(_: Request) -> Response:
    return StreamingResponse(iter([b"one", b"three"]))


async def fail(_: Request) -> Response:
    raise RuntimeError("broken")


async def live(_: Request) -> Response:
    return PlainTextResponse("live")


async def busy(_: Request) -> Response:
    return JSONResponse({"error": "the server is not ready: starting"}, 503)


APP = Starlette(
    routes=[
        Route("/v2/models/{name}/infer", infer, methods=["POST"]),
        Route("/refuse", refuse),
        Route("/refuse-otherwise", refuse_in_another_form),
        Route("/stream", stream),
        Route("/fail", fail),
        Route("/v2/health/live", live),
        Route("/v2/health/ready", busy),
        Mount("/page", PlainTextResponse("style")),
    ]
)


@pytest.fixture
def ask(caplog: pytest.LogCaptureFixture) -> Ask:
    """Sends a request, and gives the fields of its line; `level` is that of its record."""
    caplog.set_level(logging.DEBUG, "limelight.requests")

    async def run(
        method: str,
        path: str,
        *parts: bytes,
        app: Any = APP,
        root_path: str = "",
        leaves: bool = False,
        **state: str,
    ) -> Fields:
        caplog.clear()
        bodies = list(parts) or [b""]
        messages: list[Message] = [
            {"type": "http.request", "body": part, "more_body": index < len(bodies)}
            for index, part in enumerate(bodies, start=1)
        ]

        async def receive() -> Message:
            if not messages and not leaves:
                await asyncio.Event().wait()
            return messages.pop(0) if messages else {"type": "http.disconnect"}

        async def send(_: Message) -> None:
            return

        scope = {
            "type": "http", "method": method, "path": path, "root_path": root_path, "headers": [],
            "query_string": b"secret=1", "state": state,
        }  # fmt: skip
        try:
            await RequestLog(app)(scope, receive, send)
        finally:
            (record,) = caplog.records
            assert record.name == "limelight.requests"
            fields: Fields = getattr(record, REQUEST)
            assert record.getMessage() == f"{method} {fields['path']} {fields['status']}"
        assert 0 <= fields.pop("total_ms") < 60_000
        return {"level": record.levelname, **fields}

    return run


def test_a_record_has_all_that_loggings_own_have() -> None:
    arguments, fields = ("POST", "/x", 200), {"id": "7"}
    record = make_record(logging.INFO, arguments, fields)
    name, text = "limelight.requests", "%s %s %d"
    usual = logging.LogRecord(name, logging.INFO, "", 0, text, arguments, None)
    assert 0 <= usual.created - record.created < 60
    found, wanted = ({**vars(each), **TIMES} for each in (record, usual))
    assert found.pop(REQUEST) is fields
    assert found == wanted
    assert record.getMessage() == "POST /x 200"


async def test_a_line_tells_what_was_asked_and_how_it_ended(ask: Ask) -> None:
    fields = await ask(
        "POST", "/v2/models/demo/infer", b"two", b"parts", request_id="7", key="infer:00112233"
    )
    assert fields == {
        "level": "INFO",
        "id": "7",
        "method": "POST",
        "path": "/v2/models/{name}/infer",
        "model": "demo",
        "version": "3",
        "rows": 2,
        "shapes": {"query": (2, 4, 6)},
        "graph": "fused_bias",
        "queue_ms": 1.5,
        "compute_ms": 0.0,
        "status": 200,
        "request_bytes": 8,
        "response_bytes": 6,
        "key": "infer:00112233",
    }


async def test_an_error_tells_its_text(ask: Ask) -> None:
    fields = await ask("GET", "/refuse")
    assert (fields["level"], fields["status"]) == ("INFO", 400)
    assert fields["error"] == "what came\nwhat was expected"


async def test_an_error_in_another_form_tells_its_status(ask: Ask) -> None:
    fields = await ask("GET", "/refuse-otherwise")
    assert fields["status"] == 415
    assert "error" not in fields


async def test_a_path_that_is_not_served_is_told_as_it_came_but_not_its_query(ask: Ask) -> None:
    fields = await ask("GET", "/nothing\n" + "x" * 1000)
    assert fields["status"] == 404
    assert fields["path"].startswith("/nothing\nxxx")
    assert len(fields["path"]) < 300
    assert "secret" not in str(fields)


async def test_the_prefix_of_a_proxy_is_no_part_of_a_path(ask: Ask) -> None:
    assert (await ask("GET", "/base/nothing", root_path="/base"))["path"] == "/nothing"
    assert (await ask("GET", "/page/style.css"))["path"] == "/page/style.css"


async def test_a_stream_is_counted_to_its_end(ask: Ask) -> None:
    assert (await ask("GET", "/stream"))["response_bytes"] == 8


async def test_head_sends_no_body(ask: Ask) -> None:
    assert (await ask("HEAD", "/v2/health/live"))["response_bytes"] == 0


async def test_probes_that_succeed_are_for_debugging(ask: Ask) -> None:
    assert (await ask("GET", "/v2/health/live"))["level"] == "DEBUG"
    assert (await ask("GET", "/base/v2/health/live", root_path="/base"))["level"] == "DEBUG"
    assert (await ask("GET", "/v2/health/ready"))["level"] == "INFO"
    assert (await ask("POST", "/v2/health/live"))["level"] == "INFO"


async def test_a_fault_is_an_error_with_its_cause(
    ask: Ask, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(RuntimeError):
        await ask("GET", "/fail")
    (record,) = caplog.records
    assert record.levelname == "ERROR"
    fields = getattr(record, REQUEST)
    assert fields["status"] == 500
    assert fields["error"] == "RuntimeError: broken"


async def test_a_model_that_is_not_served_is_told_as_it_was_asked_for(ask: Ask) -> None:
    async def absent(request: Request) -> Response:
        return JSONResponse({"error": "no such model"}, 404)

    app = Starlette(routes=[Route("/v2/models/{name}", absent)])
    fields = await ask("GET", f"/v2/models/{'x' * 1000}", app=app)
    assert fields["model"].startswith("xxx")
    assert len(fields["model"]) < 300


async def test_a_client_that_left_is_told(ask: Ask) -> None:
    async def wait(scope: Scope, receive: Receive, send: Send) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        await send({"type": "http.response.start", "status": 400, "headers": []})
        await send({"type": "http.response.body", "body": b'{"error":"the client left"}'})

    fields = await ask("POST", "/x", b"part", app=wait, leaves=True)
    assert fields["left"] is True
    assert "left" not in await ask("GET", "/stream")


async def test_a_client_that_leaves_after_its_answer_did_not_leave(ask: Ask) -> None:
    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})
        await receive()
        assert (await receive())["type"] == "http.disconnect"

    assert "left" not in await ask("GET", "/x", app=answer, leaves=True)


async def test_a_request_that_is_cut_off_has_its_line(caplog: pytest.LogCaptureFixture) -> None:
    waits = asyncio.Event()

    async def wait(scope: Scope, receive: Receive, send: Send) -> None:
        waits.set()
        await asyncio.Event().wait()

    async def never(*_: Any) -> Any:
        raise AssertionError

    scope = {"type": "http", "method": "GET", "path": "/x", "headers": []}
    task = asyncio.create_task(RequestLog(wait)(scope, never, never))
    await waits.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    (record,) = caplog.records
    assert record.getMessage() == "GET /x 500"


async def test_requests_at_the_same_time_share_nothing(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    gate = asyncio.Barrier(5)

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        number = int(scope["path"][1:])
        await gate.wait()
        note_answer(
            scope["state"], Inference({"query": np.zeros((number, 1, 6), np.float32)}), ANSWER
        )
        await gate.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"x" * number})

    async def send(_: Message) -> None:
        return

    async def receive() -> Message:
        raise AssertionError

    scopes = [
        {"type": "http", "method": "GET", "path": f"/{n}", "headers": []} for n in range(1, 6)
    ]
    await asyncio.gather(*(RequestLog(answer)(scope, receive, send) for scope in scopes))
    told = [getattr(record, REQUEST) for record in caplog.records]
    assert sorted(fields["path"] for fields in told) == ["/1", "/2", "/3", "/4", "/5"]
    for fields in told:
        number = int(fields["path"][1:])
        assert fields["response_bytes"] == number
        assert fields["shapes"] == {"query": (number, 1, 6)}


async def test_what_is_no_request_has_no_line(caplog: pytest.LogCaptureFixture) -> None:
    seen = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(scope["type"])

    async def never(*_: Any) -> Any:
        raise AssertionError

    await RequestLog(app)({"type": "lifespan"}, never, never)
    assert (seen, caplog.records) == (["lifespan"], [])
