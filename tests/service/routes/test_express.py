"""Inference requests past FastAPI and its layers: nobody can tell, but by the time they take."""

import gzip
from contextlib import ExitStack
from typing import Any

import pytest
from starlette.types import Receive, Scope, Send

from service.http.holdings import Held
from service.routes.entrance import Entrance
from service.routes.express import Express
from service.settings import Settings
from service.state import State
from tests.service.http.live_server import wait_until
from tests.service.routes.pair import QUERY, V1, V2, V2_PATH, Pair, open_pair, write

PREFIX = "/some/where"
PATHS = [
    "/v1/attention",
    "/v1/attention/",
    "/v1//attention",
    "//v1/attention",
    "/v1/attention%0A",
    "/v1/%61ttention",
    "/V1/attention",
    "/v2/models/demo/infer",
    "/v2/models/demo/infer/",
    "/v2/models/demo/infer%0A",
    "/v2/models/d%65mo/infer",
    "/v2/models/demo%0A/infer",
    "/v2/models/de%2Fmo/infer",
    "/v2/models/demo%2Finfer",
    "/v2/models/%2E%2E/infer",
    "/v2/models/d%C3%A9mo/infer",
    "/v2/models/%FF/infer",
    "/v2/models//infer",
    "/v2/models/infer",
    "/v2/models/other/infer",
    "/v2/models/versions/infer",
    "/v2/models/stats/infer",
    "/v2/models/demo/Infer",
    "/v2/models/demo/infer?a=b",
    "/v2/models/demo/versions/1/infer",
    "/v2/models/demo/versions/1/infer/",
    "/v2/models/demo/versions/01/infer",
    "/v2/models/demo/versions/2/infer",
    "/v2/models/demo/versions//infer",
    "/v2/models//versions/1/infer",
    "/v2/models/demo/versions/infer",
    "/v2/models/demo/version/1/infer",
    "/v2/models/versions/versions/1/infer",
    "/v2/models/demo/versions/1/2/infer",
    "/v2/models/demo/versions/1%2F/infer",
    "/v2/models/demo/generate",
]
HEADERS = [
    ["Accept-Encoding: gzip"],
    ["Accept-Encoding: gzip, deflate"],
    ["Accept-Encoding: identity"],
    ["Origin: http://other"],
    ["Origin: null"],
    ["Sec-Fetch-Site: cross-site"],
    ["Sec-Fetch-Site: same-origin"],
    ["Content-Encoding: br"],
    ["Content-Encoding: identity"],
    ["Expect: 100-continue"],
    ["Accept: application/x-npz"],
    ["Content-Type: text/plain"],
    ["Inference-Header-Content-Length: 5"],
    ["Inference-Header-Content-Length: x"],
    ["Inference-Header-Content-Length: 5", "Inference-Header-Content-Length: 5"],
]


def write_binary(**parameters: Any) -> tuple[bytes, str]:
    """A request of V2 in binary, and its header."""
    entry: dict[str, Any] = {"name": "query", "shape": [2, 5, 6], "datatype": "FP32"}
    entry["parameters"] = {"binary_data_size": QUERY.nbytes}
    head = write({"inputs": [entry], "parameters": {"binary_data_output": True} | parameters})
    return head + QUERY.tobytes(), f"Inference-Header-Content-Length: {len(head)}"


@pytest.mark.parametrize("method", ["POST", "GET", "HEAD", "PUT", "OPTIONS"])
@pytest.mark.parametrize("root_path", ["", PREFIX], ids=["no prefix", "prefix"])
def test_every_path_and_method_is_answered_as_by_the_router(
    pair: Pair, root_path: str, method: str
) -> None:
    for path in PATHS:
        body = write(V1 if "v1" in path else V2)
        for prefix in {"", root_path}:
            pair.ask(prefix + path, body, method=method)
    pair.compare_counts()


@pytest.mark.parametrize(
    ("path", "route", "body", "is_prompt"),
    [
        ("/v1/attention", "/v1/attention", V1, False),
        (V2_PATH, "/v2/models/{name}/infer", V2, True),
        ("/v2/models/d%65mo/infer", "/v2/models/{name}/infer", V2, True),
        (
            "/v2/models/demo/versions/1/infer",
            "/v2/models/{name}/versions/{version}/infer",
            V2,
            True,
        ),
    ],
)
@pytest.mark.parametrize("root_path", ["", PREFIX], ids=["no prefix", "prefix"])
def test_the_log_tells_the_route_and_all_that_is_known(
    pair: Pair, root_path: str, path: str, route: str, body: Any, *, is_prompt: bool
) -> None:
    told = pair.ask(root_path + path, write(body))
    line = told.line
    assert (told.status, line["path"], line["id"], line["level"]) == (200, route, "mine", "INFO")
    assert line["request_bytes"] == len(write(body))
    assert line["response_bytes"] == len(told.body)
    assert (line["model"], line["rows"]) == ("demo", 2)
    assert line["shapes"] == {"query": (2, 5, 6)}
    pair.express.expect(*[True] if is_prompt else [])
    pair.compare_counts()


@pytest.mark.parametrize(
    "parameters",
    [{}, {"weights": "none"}, {"causal": True}, {"timeout": 10**7}, {"priority": 2}],
    ids=str,
)
def test_answers_in_binary_are_the_same_byte_for_byte(
    pair: Pair, parameters: dict[str, Any]
) -> None:
    body, header = write_binary(**parameters)
    told = [pair.ask(V2_PATH, body, header) for _ in range(3)]
    assert told[0] == told[1] == told[2], "what is kept of the first request changes nothing"
    assert dict(told[0].headers)["content-type"] == "application/octet-stream"
    pair.compare_counts()


@pytest.mark.parametrize("path", ["/v1/attention", V2_PATH])
def test_headers_are_heeded_as_by_the_layers(pair: Pair, path: str) -> None:
    for headers in HEADERS:
        pair.ask(path, write(V1 if "v1" in path else V2), *headers)
    pair.compare_counts()


@pytest.mark.parametrize("path", ["/v1/attention", V2_PATH])
def test_an_origin_that_is_allowed_is_told_so(
    stack: ExitStack, settings: Settings, path: str
) -> None:
    pair = open_pair(stack, settings.model_copy(update={"cors_origins": "http://page"}))
    told = pair.ask(path, write(V1 if "v1" in path else V2), "Origin: http://page")
    assert dict(told.headers)["access-control-allow-origin"] == "http://page"
    pair.ask(path, write(V1 if "v1" in path else V2), "Origin: http://another")


def test_a_large_answer_is_sent_whole(pair: Pair) -> None:
    entry = {"name": "query", "shape": [1, 200, 6], "datatype": "FP32", "data": [0.25] * 1200}
    told = pair.ask(V2_PATH, write({"inputs": [entry]}))
    assert len(told.body) > 3 * 200 * 200
    pair.compare_counts()


def test_a_compressed_body_takes_the_long_way(pair: Pair) -> None:
    packed = gzip.compress(write(V2), mtime=0)
    assert pair.ask(V2_PATH, packed, "Content-Encoding: gzip").status == 200
    pair.compare_counts()


def test_nothing_is_held_when_an_answer_is_gone(pair: Pair) -> None:
    pair.ask("/v1/attention", write(V1))
    pair.ask(V2_PATH, write({"inputs": []}))
    for front in (pair.express, pair.plain):
        holdings = front.state.holdings
        assert (holdings.bodies.in_use_bytes, holdings.answers.in_use_bytes) == (0, 0)


def test_each_answer_is_given_back_once(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[Any] = []
    keep = Held.keep_answer

    def note(held: Held) -> Any:
        close = keep(held)

        def close_noted() -> None:
            kept.append(held)
            close()

        return close_noted

    monkeypatch.setattr(Held, "keep_answer", note)
    pair.ask("/v1/attention", write(V1))
    wait_until(lambda: len(kept) >= 2)
    assert len(kept) == 2, "one with each server"


async def test_what_is_no_request_is_passed_on(state: State) -> None:
    passed: list[Scope] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        passed.append(scope)

    nothing: Any = None
    for kind in ("lifespan", "websocket"):
        scope = {"type": kind, "path": "/v1/attention"}
        await Express(app, state, Entrance())(scope, nothing, nothing)
        assert passed.pop() is scope
