"""Which requests need none of the layers."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.types import Scope

from service.http.access import Access
from service.http.gate import Gate
from service.http.inlet import STATE, Inlet
from service.http.keys import Key, Keys, hash_key
from service.routes import attention, infer
from service.routes.entrance import ATTENTION, ROUTES, Entrance, find_goal

INFER = "/v2/models/{name}/infer"
INFER_VERSION = "/v2/models/{name}/versions/{version}/infer"
KEYS = Keys([Key("infer", hash_key(b"a key of the tests"))])
NOTHING: Any = None


def make_scope(path: str = "/v1/attention", *headers: tuple[bytes, bytes], **more: Any) -> Scope:
    """A request whose body has a known length."""
    state = {STATE: Inlet(NOTHING, NOTHING, 7)}
    scope = {"type": "http", "method": "POST", "path": path, "headers": headers, "state": state}
    return scope | more


def find_route(path: str) -> tuple[str, dict[str, Any]] | None:
    """The route of a path and what it names, by the routes' own patterns."""
    for route in (ATTENTION, *ROUTES.values()):
        if match := route.path_regex.fullmatch(path):
            return route.path, match.groupdict()
    return None


@given(
    st.lists(
        st.sampled_from(["v1", "v2", "models", "attention", "versions", "infer", "a", "1", ""]),
        max_size=8,
    )
)
def test_a_path_leads_where_its_route_says(parts: list[str]) -> None:
    path = "/" + "/".join(parts)
    goal, route = find_goal(path), find_route(path)
    assert (goal is None) is (route is None)
    if goal is None or route is None:
        return
    endpoint, found, params = goal
    assert found.path == route[0]
    assert {name: text for name, text in params.items() if text is not None} == route[1]
    assert endpoint is (attention.answer if found is ATTENTION else infer.answer_route)


@pytest.mark.parametrize(
    ("path", "route", "params"),
    [
        ("/v1/attention", "/v1/attention", {}),
        ("/v2/models/demo/infer", INFER, {"name": "demo", "version": None}),
        ("/v2/models/demo/versions/7/infer", INFER_VERSION, {"name": "demo", "version": "7"}),
    ],
)
@pytest.mark.parametrize("prefix", ["", "/some/where"])
def test_it_is_noted_in_the_scope_as_routers_do(
    path: str, route: str, params: dict[str, Any], prefix: str
) -> None:
    for sent in {path, prefix + path}:
        scope = make_scope(sent)
        assert Entrance(prefix).find(scope) is not None
        assert (scope["route"].path, scope["path_params"]) == (route, params)


def test_the_prefix_of_a_proxy_is_taken_off_once_and_as_a_whole() -> None:
    for path in ("/some/where/some/where/v1/attention", "/some/wherev1/attention", "/some/where"):
        assert Entrance("/some/where").find(make_scope(path)) is None


@pytest.mark.parametrize(
    "scope",
    [
        pytest.param({"type": "lifespan"}, id="the life of the application"),
        pytest.param({"type": "websocket", "path": "/v1/attention"}, id="a WebSocket"),
        pytest.param(make_scope(method="GET"), id="another method"),
        pytest.param(make_scope("/v2"), id="another path"),
        pytest.param(make_scope("/v1/attention", (b"origin", b"null")), id="a browser's origin"),
        pytest.param(make_scope("/v1/attention", (b"sec-fetch-site", b"none")), id="a browser"),
        pytest.param(make_scope("/v1/attention", (b"content-encoding", b"")), id="a coding"),
    ],
)
def test_other_requests_take_the_long_way_and_nothing_is_noted(scope: Scope) -> None:
    assert Entrance().find(scope) is None
    assert not {"route", "path_params"} & scope.keys()


@pytest.mark.parametrize(
    ("headers", "label"),
    [
        ([], None),
        ([(b"authorization", b"Bearer another")], None),
        ([(b"authorization", b"Bearer a key of the tests")] * 2, None),
        ([(b"authorization", b"Bearer a key of the tests")], KEYS.known[0].label),
    ],
)
def test_where_there_are_keys_one_is_needed(
    headers: list[tuple[bytes, bytes]], label: str | None
) -> None:
    entrance = Entrance("/some", Gate(NOTHING, KEYS, Access(metrics_without_key=True)))
    scope = make_scope("/some/v1/attention", *headers)
    assert (entrance.find(scope) is not None) is (label is not None)
    assert scope["state"].get("key") == label
    assert ("route" in scope) is (label is not None)
