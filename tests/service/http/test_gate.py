"""Nobody comes in without a key that is known."""

import json
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from service.http.access import Access
from service.http.gate import Gate, read_key
from service.http.keys import Key, Keys, hash_key

INFER, ADMIN = b"infer-key-of-the-tests", b"admin-key-of-the-tests"
KEYS = Keys([Key("infer", hash_key(INFER)), Key("admin", hash_key(ADMIN))])
Pairs = Iterable[tuple[bytes, bytes]]

NO_KEY = "no key came; send one header 'Authorization: Bearer KEY'"
WRONG_KEY = "the key that came is not known here; ask whoever runs this server for one"
WRONG_ROLE = (
    "the key that came has the role infer, which may read and infer; anything else needs a key "
    "with the role admin"
)


async def tell(scope: Scope, receive: Receive, send: Send) -> None:
    """An application that answers with the state of the request."""
    body = json.dumps(scope.get("state", {})).encode()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})


async def send_to(app: Any, scope: Scope) -> list[Message]:
    """What an application sends; it may not read the body."""
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        raise AssertionError("the body was read")

    await app(scope, receive, send)
    return sent


async def ask(
    method: str, path: str, headers: Pairs = (), root_path: str = "", app: Any = tell
) -> tuple[int, Any, dict[bytes, bytes]]:
    """Status, body and headers of an answer."""
    scope = {
        "type": "http", "method": method, "path": path, "root_path": root_path,
        "headers": list(headers), "query_string": b"", "state": {},
    }  # fmt: skip
    start, body = await send_to(Gate(app, KEYS, Access()), scope)
    return start["status"], json.loads(body["body"]), dict(start["headers"])


def bear(key: bytes, scheme: bytes = b"Bearer") -> Pairs:
    """The header of a key."""
    return [(b"host", b"limelight"), (b"authorization", scheme + b" " + key)]


@pytest.mark.parametrize("scheme", [b"Bearer", b"bearer", b"BEARER", b"Bearer  "])
@pytest.mark.parametrize("path", ["/v2/models", "/nothing"])
async def test_a_known_key_opens_and_is_noted(scheme: bytes, path: str) -> None:
    status, state, _ = await ask("GET", path, bear(INFER, scheme))
    assert (status, state) == (200, {"key": f"infer:{hash_key(INFER)[:4].hex()}"})


@pytest.mark.parametrize("path", ["/v2/health/live", "/v2/health/ready", "/", "/page/style.css"])
@pytest.mark.parametrize("headers", [(), bear(b"wrong"), bear(INFER)])
async def test_what_is_open_asks_for_none(path: str, headers: Pairs) -> None:
    assert await ask("GET", path, headers) == (200, {}, {})


@pytest.mark.parametrize(
    "path", ["/v2/models", "/v2/models/absent", "/nothing", "//v2/health/live"]
)
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
@pytest.mark.parametrize(
    ("headers", "said"),
    [
        ((), NO_KEY),
        ([(b"authorization", b"")], NO_KEY),
        ([(b"authorization", b"Bearer")], NO_KEY),
        ([(b"authorization", b"Bearer ")], NO_KEY),
        ([(b"authorization", INFER)], NO_KEY),
        ([(b"authorization", b"Basic " + INFER)], NO_KEY),
        ([(b"authorization", b"Bearer\t" + INFER)], NO_KEY),
        ([(b"x-api-key", INFER)], NO_KEY),
        ([*bear(INFER), *bear(INFER)], NO_KEY),
        ([*bear(b"wrong"), *bear(ADMIN)], NO_KEY),
        (bear(b"wrong"), WRONG_KEY),
        (bear(INFER[:-1]), WRONG_KEY),
        (bear(INFER + b"x"), WRONG_KEY),
        (bear(INFER.upper()), WRONG_KEY),
        (bear(INFER + b", Bearer " + ADMIN), WRONG_KEY),
        (bear(hash_key(INFER)), WRONG_KEY),
        (bear(hash_key(INFER).hex().encode()), WRONG_KEY),
        (bear(b"\xff\0"), WRONG_KEY),
        (bear(b"x" * 10000), WRONG_KEY),
    ],
)
async def test_without_one_that_is_known_nothing_is_told_but_what_to_send(
    path: str, method: str, headers: Pairs, said: str
) -> None:
    status, body, answered = await ask(method, path, headers)
    assert (status, body) == (401, {"error": said})
    assert answered[b"www-authenticate"] == b"Bearer"
    assert answered[b"content-type"] == b"application/json"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/v2/repository/models/demo/load"),
        ("POST", "/v2/logging"),
        ("DELETE", "/v2/models/demo"),
        ("POST", "/nothing"),
    ],
)
async def test_what_changes_something_is_for_administrators(method: str, path: str) -> None:
    status, body, answered = await ask(method, path, bear(INFER))
    assert (status, body) == (403, {"error": WRONG_ROLE})
    assert b"www-authenticate" not in answered
    assert (await ask(method, path, bear(ADMIN)))[0] == 200


@pytest.mark.parametrize("path", ["/v1/attention", "/v2/models/demo/infer"])
@pytest.mark.parametrize("key", [INFER, ADMIN])
async def test_both_roles_infer(path: str, key: bytes) -> None:
    assert (await ask("POST", path, bear(key)))[0] == 200


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/base/v2/health/live", 200),
        ("/v2/health/live", 200),
        ("/base/v2/models", 401),
        ("/v2/models", 401),
        ("/base", 200),
        ("/base/", 200),
        ("/base/base/v2/health/live", 401),
        ("/basev2/health/live", 401),
        ("/other/v2/health/live", 401),
        ("/v2/health/live/base", 401),
    ],
)
async def test_a_prefix_counts_whether_or_not_the_proxy_removes_it(path: str, status: int) -> None:
    assert (await ask("GET", path, root_path="/base"))[0] == status


@pytest.mark.parametrize(
    "host", [b"", b"/v2/health/live", b"x/v2/health/live?", b"limelight#", b"a b", b"[::1"]
)
async def test_the_host_has_no_say(host: bytes) -> None:
    """Starlette's `request.url` is made of it (CVE-2026-48710)."""
    assert (await ask("GET", "/v2/models", [(b"host", host)]))[0] == 401


async def answer(_: Request) -> Response:
    return PlainTextResponse('"served"')


SERVED = Starlette(
    routes=[
        Route(path, answer)
        for path in ("/v2/models", "/v2/models/{name}", "/metrics", "/v2", "/openapi.json")
    ]
)


@given(
    st.lists(
        st.sampled_from(
            ["v2", "models", "health", "live", "page", "metrics", "..", ".", "", "%2e", "a.css"]
        ),
        max_size=6,
    ),
    st.sampled_from(["", "/v2", "/page", "/base"]),
)
async def test_no_path_reaches_a_closed_endpoint_without_a_key(
    parts: list[str], root_path: str
) -> None:
    """The gate and the router see the same path, so that none can mean two things."""
    scope = {
        "type": "http", "method": "GET", "path": "/" + "/".join(parts), "root_path": root_path,
        "headers": [], "query_string": b"",
    }  # fmt: skip
    start, *_ = await send_to(Gate(SERVED, KEYS, Access()), scope)
    assert start["status"] in (401, 404)


async def test_a_websocket_is_closed_whatever_its_key() -> None:
    scope = {"type": "websocket", "path": "/v2/health/live", "headers": bear(ADMIN)}
    sent = await send_to(Gate(tell, KEYS, Access()), scope)
    assert sent == [{"type": "websocket.close", "code": 1008}]


async def test_the_life_of_the_application_itself_needs_no_key() -> None:
    sent = await send_to(Gate(tell, KEYS, Access()), {"type": "lifespan"})
    assert sent[0]["status"] == 200


@given(st.lists(st.tuples(st.sampled_from([b"authorization", b"host"]), st.binary())))
def test_a_key_comes_out_of_one_header_alone(headers: list[tuple[bytes, bytes]]) -> None:
    values = [value for name, value in headers if name == b"authorization"]
    key = read_key(headers)
    if key is not None:
        assert len(values) == 1
        assert values[0].lower().startswith(b"bearer")
