"""What Serve's proxy does where a replica is lost, and how its own errors look."""

import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

import pytest
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import Message, Receive, Scope, Send

from deploy.ray import proxy
from deploy.ray.proxy import MAX_TRIES, SecondTry, make_layers

PARTS: Final = (b"12", b"", b"345")
Try = Callable[[Scope, Receive, Send], Awaitable[None]]
LOST: Final = "the replica that had this request was lost; try again"


class Proxy:
    """A proxy that does another thing at each try, and the layer around it.

    Attributes:
        bodies: that it received, one for each try.
    """

    def __init__(self, *tries: Try) -> None:
        self._tries = iter(tries)
        self.bodies: list[bytes] = []
        self.layer = SecondTry(self.answer)

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read the body, and do what is next."""
        scope["headers"].append((b"x-request-id", b"new"))
        assert len(scope["headers"]) == 1
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message["body"], message["more_body"]
        self.bodies.append(body)
        await next(self._tries)(scope, receive, send)

    async def ask(self, parts: Sequence[bytes] = PARTS) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body of the answer to one request."""
        messages: list[Message] = []
        left = [{"type": "http.request", "body": part, "more_body": True} for part in parts]
        left[-1]["more_body"] = False
        waiting = iter(left)

        async def receive() -> Message:
            return next(waiting)

        async def send(message: Message) -> None:
            messages.append(message)

        scope = {"type": "http", "method": "POST", "headers": []}
        await self.layer(scope, receive, send)
        start, *rest = messages
        assert all(message["type"] == "http.response.body" for message in rest)
        headers = {name.decode(): value.decode() for name, value in start["headers"]}
        return start["status"], headers, b"".join(message.get("body", b"") for message in rest)


async def break_down(scope: Scope, receive: Receive, send: Send) -> None:
    """As the proxy does where it cannot say what went wrong."""
    raise RuntimeError("the actor died")


async def say_nothing(scope: Scope, receive: Receive, send: Send) -> None:
    """As it does where the answer of a replica does not begin."""


def respond(response: Response) -> Try:
    """Answer with a response."""
    return response


BREAKDOWNS: Final = pytest.mark.parametrize(
    "lose",
    [break_down, say_nothing, respond(PlainTextResponse("Traceback: ActorDiedError", 500))],
    ids=["raises", "says nothing", "says 500"],
)


@BREAKDOWNS
async def test_another_replica_gets_the_whole_request(lose: Try) -> None:
    asked = Proxy(lose, respond(JSONResponse({"output": 7})))
    status, _, body = await asked.ask()
    assert (status, json.loads(body)) == (200, {"output": 7})
    assert asked.bodies == [b"12345"] * 2


@BREAKDOWNS
async def test_where_all_are_lost_the_client_is_to_come_again(lose: Try) -> None:
    asked = Proxy(*[lose] * MAX_TRIES)
    status, headers, body = await asked.ask()
    assert (status, json.loads(body)) == (503, {"error": LOST})
    assert headers["retry-after"] == "1"
    assert len(asked.bodies) == MAX_TRIES


async def test_a_body_that_is_not_kept_is_not_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proxy, "MAX_KEPT_BYTES", 4)
    asked = Proxy(break_down, break_down, respond(JSONResponse({})))
    assert (await asked.ask())[0] == 503
    assert asked.bodies == [b"12345"]
    assert (await asked.ask([b"6789"]))[0] == 200  # and what was kept is free again
    assert asked.bodies == [b"12345", b"6789", b"6789"]


async def test_an_error_of_a_replica_is_an_answer() -> None:
    refused = JSONResponse({"error": "the server failed; its log says why"}, 500)
    asked = Proxy(respond(refused))
    status, _, body = await asked.ask()
    assert (status, body) == (500, refused.body)


async def test_an_error_of_the_proxy_has_the_form_of_ours() -> None:
    full = PlainTextResponse("dropped due to backpressure", 503, {"Retry-After": "2"})
    status, headers, body = await Proxy(respond(full)).ask()
    assert (status, json.loads(body)) == (503, {"error": "dropped due to backpressure"})
    assert headers["content-type"] == "application/json"
    assert headers["content-length"] == str(len(body))
    assert headers["retry-after"] == "2"


async def test_an_answer_that_breaks_off_is_not_begun_again() -> None:
    async def break_off(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"half", "more_body": True})
        raise RuntimeError("the actor died")

    with pytest.raises(RuntimeError, match="the actor died"):
        await Proxy(break_off).ask()


async def test_what_is_no_request_is_passed_on() -> None:
    came: list[str] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        came.append(scope["type"])

    layer: Any = SecondTry(app)
    await layer({"type": "websocket"}, None, None)
    assert came == ["websocket"]


def test_serve_finds_the_layer() -> None:
    (layer,) = make_layers()
    made: Any = layer.cls
    assert made is SecondTry
