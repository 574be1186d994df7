"""What a browser is told that it must not do with our answers."""

from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send

from service.http.security_headers import SecurityHeaders

CSP = (
    "default-src 'self'; base-uri 'none'; frame-ancestors 'none'; object-src 'none'; "
    "form-action 'self'"
)
PAGE = {
    "x-content-type-options": "nosniff",
    "content-security-policy": CSP,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
}
DOCS = PAGE | {"content-security-policy": f"{CSP}; img-src 'self' data:"}
DATA = {"x-content-type-options": "nosniff"}
OWN = [(b"content-type", b"text/html")]


async def answer(scope: Scope, receive: Receive, send: Send) -> None:
    """An application whose answers share one list of headers."""
    await send({"type": "http.response.start", "status": 200, "headers": OWN})
    await send({"type": "http.response.body", "body": b"body"})


async def ask(path: str, *, kind: str = "http", root_path: str = "", app: Any = answer) -> Any:
    """The headers of an answer, in order."""
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        raise AssertionError

    scope = {"type": kind, "path": path, "root_path": root_path}
    await SecurityHeaders(app)(scope, receive, send)
    return [(name.decode(), value.decode()) for name, value in sent[0].get("headers", ())]


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("/", PAGE),
        ("/page/style.css", PAGE),
        ("/docs", DOCS),
        ("/docs/assets/swagger-ui.css", PAGE),
        ("/openapi.json", PAGE),
        ("/metrics", PAGE),
        ("/nothing", PAGE),
        ("/v1/attention", DATA),
        ("/v2", DATA),
        ("/v2/models/demo/infer", DATA),
    ],
)
@pytest.mark.parametrize("prefix", ["", "/base"])
async def test_each_answer_has_the_headers_of_its_kind(
    path: str, wanted: dict[str, str], prefix: str
) -> None:
    headers = await ask(f"{prefix}{path}", root_path=prefix)
    assert headers == [("content-type", "text/html"), *wanted.items()]


async def test_a_response_that_is_sent_twice_does_not_grow() -> None:
    assert await ask("/") == await ask("/")
    assert OWN == [(b"content-type", b"text/html")]


async def test_a_message_without_headers_gets_some() -> None:
    async def begin(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200})

    assert await ask("/v2", app=begin) == list(DATA.items())


async def test_what_is_no_request_passes() -> None:
    assert await ask("", kind="lifespan") == [("content-type", "text/html")]
