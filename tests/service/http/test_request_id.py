"""Every answer has an id: the client's, where a log can hold it, its trace's, or a new one."""

import re

import pytest
from starlette.types import Message, Receive, Scope, Send

from service.http.request_id import RequestId

NEW = re.compile(r"[0-9a-f]{32}")


async def answer(scope: Scope, receive: Receive, send: Send) -> None:
    """An application that gives back the id that it was told."""
    given = scope.get("state", {}).get("request_id", "")
    await send({"type": "http.response.start", "status": 200, "headers": [(b"a", b"b")]})
    await send({"type": "http.response.body", "body": given.encode()})


async def ask(*given: str, kind: str = "http", trace: str = "") -> tuple[dict[str, str], str]:
    """The headers of an answer, and the id that the application was told."""
    messages: list[Message] = []

    async def send(message: Message) -> None:
        messages.append(message)

    async def receive() -> Message:
        raise AssertionError

    headers = [(b"x-request-id", value.encode("latin-1")) for value in given]
    headers += [(b"traceparent", trace.encode())] if trace else []
    await RequestId(answer)({"type": kind, "headers": headers}, receive, send)
    found = {name.decode(): value.decode() for name, value in messages[0]["headers"]}
    return found, messages[1]["body"].decode()


@pytest.mark.parametrize("given", ["7", "a-b_c.D", "x" * 128])
async def test_an_id_fit_for_a_log_comes_back(given: str) -> None:
    headers, told = await ask(given)
    assert headers == {"a": "b", "x-request-id": given}
    assert told == given


@pytest.mark.parametrize("given", ["", "x" * 129, "a b", "a\nb", "a;b", "\N{POUND SIGN}", "7\n"])
async def test_any_other_is_replaced_by_a_new_one(given: str) -> None:
    headers, told = await ask(given)
    assert NEW.fullmatch(headers["x-request-id"])
    assert told == headers["x-request-id"]


TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"  # of https://www.w3.org/TR/trace-context/
PARENT = f"00-{TRACE}-00f067aa0ba902b7-01"


@pytest.mark.parametrize(("given", "expected"), [([], TRACE), (["a b"], TRACE), (["mine"], "mine")])
async def test_the_id_of_a_trace_stands_in_for_one(given: list[str], expected: str) -> None:
    headers, told = await ask(*given, trace=PARENT)
    assert headers["x-request-id"] == told == expected


async def test_a_trace_that_is_none_does_not() -> None:
    headers, _ = await ask(trace=PARENT.replace(TRACE, "0" * 32))
    assert NEW.fullmatch(headers["x-request-id"])
    assert headers["x-request-id"] != "0" * 32


async def test_without_one_every_request_gets_its_own() -> None:
    first, second = await ask(), await ask()
    assert first[0]["x-request-id"] != second[0]["x-request-id"]


async def test_what_is_no_request_passes() -> None:
    headers, told = await ask(kind="lifespan")
    assert (headers, told) == ({"a": "b"}, "")
