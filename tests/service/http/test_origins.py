"""Which pages of other sites may ask from a browser."""

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.types import Receive, Scope, Send

from service.errors import StartError
from service.http.access import Access
from service.http.gate import Gate
from service.http.keys import Key, Keys, hash_key
from service.http.origins import Cors, read_origins

LISTED = ("https://example.com", "http://localhost:3000")
KEY = b"a-key-of-the-tests"
GATE = Keys([Key("infer", hash_key(KEY))])
PATHS = ["/v1/attention", "/v2/models", "/nothing"]


async def served(scope: Scope, receive: Receive, send: Send) -> None:
    """An application that answers everything."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"served"})


async def ask(method: str, path: str, **headers: str) -> httpx.Response:
    """What is answered where keys are wanted; `_` in a name is a hyphen."""
    app = Cors(Gate(served, GATE, Access()), LISTED)
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://limelight"
    ) as client:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return await client.request(method, path, headers=named)


@pytest.mark.parametrize("origin", LISTED)
@pytest.mark.parametrize("path", PATHS)
async def test_a_listed_page_may_ask_whether_it_may_ask_and_needs_no_key_for_that(
    origin: str, path: str
) -> None:
    answer = await ask(
        "OPTIONS",
        path,
        Origin=origin,
        Access_Control_Request_Method="POST",
        Access_Control_Request_Headers="authorization, inference-header-content-length",
    )
    assert answer.status_code == 200
    assert answer.text != "served"
    assert answer.headers["Access-Control-Allow-Origin"] == origin
    assert "Authorization" in answer.headers["Access-Control-Allow-Headers"]
    assert "Access-Control-Allow-Credentials" not in answer.headers


@pytest.mark.parametrize(
    "changes",
    [
        {"Origin": "https://example.org"},
        {"Origin": "https://example.com.evil.test"},
        {"Origin": "http://example.com"},
        {"Origin": "https://example.com:444"},
        {"Origin": "null"},
        {"Origin": "*"},
        {"Access_Control_Request_Method": "DELETE"},
        {"Access_Control_Request_Headers": "x-forwarded-for"},
    ],
)
@pytest.mark.parametrize("path", PATHS)
async def test_any_other_is_told_what_may_be_sent(changes: dict[str, str], path: str) -> None:
    asked = {"Origin": LISTED[0], "Access_Control_Request_Method": "POST"} | changes
    answer = await ask("OPTIONS", path, **asked)
    assert answer.status_code == 403
    assert answer.headers["Content-Type"] == "application/json"
    assert "Access-Control-Allow-Origin" not in answer.headers
    assert answer.json() == {
        "error": f"origin {asked['Origin']!a} may not send this: origins are listed in "
        "LIMELIGHT_CORS_ORIGINS; methods are GET, POST; headers beside the usual ones are "
        "Authorization, Content-Encoding, Inference-Header-Content-Length, Traceparent, "
        "X-Request-Id"
    }


@pytest.mark.parametrize("path", PATHS)
async def test_the_question_opens_nothing(path: str) -> None:
    """Only a question in full is answered in front of the keys: all else needs one."""
    for method, headers in {
        "OPTIONS": {"Origin": LISTED[0]},
        "options": {"Access_Control_Request_Method": "POST"},
        "GET": {"Origin": LISTED[0], "Access_Control_Request_Method": "GET"},
        "POST": {"Origin": LISTED[0], "Access_Control_Request_Method": "POST"},
    }.items():
        answer = await ask(method, path, **headers)
        assert (method, answer.status_code) == (method, 401)


async def test_a_listed_page_can_read_answers_and_refusals() -> None:
    authorization = f"Bearer {KEY.decode()}"
    for headers, status in (({"Authorization": authorization}, 200), ({}, 401)):
        answer = await ask("POST", "/v1/attention", Origin=LISTED[1], **headers)
        assert answer.status_code == status
        assert answer.headers["Access-Control-Allow-Origin"] == LISTED[1]
        assert "Limelight-Graph" in answer.headers["Access-Control-Expose-Headers"]


async def test_any_other_page_cannot() -> None:
    answer = await ask("GET", "/v2/health/live", Origin="https://example.org")
    assert answer.text == "served"
    assert "Access-Control-Allow-Origin" not in answer.headers


@pytest.mark.parametrize(
    ("text", "origins"),
    [
        ("", ()),
        (" , ", ()),
        ("https://example.com", ("https://example.com",)),
        (
            "https://example.com, http://localhost:3000,http://[::1]:8080",
            ("https://example.com", "http://localhost:3000", "http://[::1]:8080"),
        ),
    ],
)
def test_origins_have_commas_between(text: str, origins: tuple[str, ...]) -> None:
    assert read_origins(text) == origins


@pytest.mark.parametrize(
    "text",
    [
        "*",
        "null",
        "example.com",
        "https://example.com/",
        "https://example.com/path",
        "https://*.example.com",
        "https://Example.com",
        "ftp://example.com",
        "https://a@example.com",
        "https://example.com https://example.org",
    ],
)
def test_what_is_not_exactly_an_origin_ends_the_start(text: str) -> None:
    with pytest.raises(StartError) as caught:
        read_origins(f"http://localhost:3000,{text}")
    assert str(caught.value).endswith(
        "expected origins such as https://example.com or http://localhost:3000, in lower case, "
        "without a path, with commas between"
    )


@given(st.text())
def test_every_text_is_read_or_refused(text: str) -> None:
    try:
        origins = read_origins(text)
    except StartError:
        return
    assert all(origin.startswith(("http://", "https://")) for origin in origins)
