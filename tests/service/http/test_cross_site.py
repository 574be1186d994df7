"""Requests that a page of another site makes a browser send."""

import httpx
import pytest
from starlette.types import Receive, Scope, Send

from service.http.cross_site import CrossSite, is_of_host

HOST = "127.0.0.1:8000"
LISTED = "https://example.com"
REFUSAL = {
    "error": "a page of another site sent this request; list its origin in "
    "LIMELIGHT_CORS_ORIGINS, or send the request from a program"
}


async def served(scope: Scope, receive: Receive, send: Send) -> None:
    """An application that answers everything."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"served"})


async def ask(method: str, headers: dict[str, str]) -> httpx.Response:
    """What is answered to a request with these headers."""
    transport = httpx.ASGITransport(CrossSite(served, (LISTED,)))
    async with httpx.AsyncClient(transport=transport, base_url=f"http://{HOST}") as client:
        return await client.request(method, "/v2/repository/models/demo/unload", headers=headers)


# The cases of https://github.com/golang/go/blob/master/src/net/http/csrf_test.go.
OWN: dict[str, dict[str, str]] = {
    "program": {},
    "same-origin": {"Sec-Fetch-Site": "same-origin"},
    "typed-by-the-user": {"Sec-Fetch-Site": "none"},
    "behind-a-proxy": {"Sec-Fetch-Site": "same-origin", "Origin": "https://limelight.test"},
    "old-browser": {"Origin": f"http://{HOST}"},
    "listed": {"Sec-Fetch-Site": "cross-site", "Origin": LISTED},
    "listed-old-browser": {"Origin": LISTED},
}
FOREIGN: dict[str, dict[str, str]] = {
    "cross-site": {"Sec-Fetch-Site": "cross-site"},
    "cross-site-of-our-name": {"Sec-Fetch-Site": "cross-site", "Origin": f"http://{HOST}"},
    "same-site": {"Sec-Fetch-Site": "same-site"},
    "unknown-word": {"Sec-Fetch-Site": "friendly"},
    "empty-word": {"Sec-Fetch-Site": ""},
    "old-browser": {"Origin": "http://evil.test"},
    "other-port": {"Origin": "http://127.0.0.1:8001"},
    "sandbox": {"Origin": "null"},
    "empty": {"Origin": ""},
    "broken": {"Origin": "http://[::1"},
}


@pytest.mark.parametrize("headers", OWN.values(), ids=OWN)
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
async def test_our_own_page_listed_pages_and_programs_are_served(
    method: str, headers: dict[str, str]
) -> None:
    assert (await ask(method, headers)).text == "served"


@pytest.mark.parametrize("headers", FOREIGN.values(), ids=FOREIGN)
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
async def test_pages_of_other_sites_can_change_nothing(
    method: str, headers: dict[str, str]
) -> None:
    answer = await ask(method, headers)
    assert (answer.status_code, answer.json()) == (403, REFUSAL)


@pytest.mark.parametrize("headers", FOREIGN.values(), ids=FOREIGN)
@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
async def test_they_may_link_to_us(method: str, headers: dict[str, str]) -> None:
    assert (await ask(method, headers)).status_code == 200


def test_an_origin_without_a_host_is_of_no_host() -> None:
    assert not is_of_host("null", "")
    assert not is_of_host("", "")


async def test_what_is_no_request_passes() -> None:
    seen: list[Scope] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(scope)

    async def never(*_: object) -> None:
        raise AssertionError

    await CrossSite(app)({"type": "lifespan"}, never, never)  # type: ignore[arg-type]
    assert seen == [{"type": "lifespan"}]
