"""The id of a request is in its answer once, whoever adds it."""

import pytest
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from deploy.ray.request_id import SoleRequestId

NAME = b"x-request-id"


async def ask(came: bytes, answered: str) -> list[bytes]:
    """The ids that an answer has behind the layer."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await Response(headers={"X-Request-Id": answered})(scope, receive, send)

    starts = []

    async def send(message: object) -> None:
        starts.append(message)

    async def receive() -> dict[str, object]:
        raise AssertionError("there is no body")

    scope = {"type": "http", "method": "GET", "headers": [(NAME, came)]}
    await SoleRequestId(app)(scope, receive, send)
    headers = starts[0]["headers"]  # type: ignore[index]
    return [value for name, value in headers if name == NAME]


@pytest.mark.parametrize(
    ("came", "answered", "left"),
    [(b"abc", "abc", []), (b"a b", "0f9c", [b"0f9c"]), (b"\xe9", "77", [b"77"])],
    ids=["the same", "unfit", "not ASCII"],
)
async def test_the_id_that_the_proxy_adds_is_not_said_twice(
    came: bytes, answered: str, left: list[bytes]
) -> None:
    assert await ask(came, answered) == left
