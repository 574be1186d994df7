"""Errors, keys and departures past FastAPI and its layers: nobody can tell."""

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from service.http.keys import hash_key
from service.settings import Settings
from service.state import State
from tests.service.http.live_server import ask, read_answer, wait_until
from tests.service.routes.pair import QUERY, V1, V2, V2_PATH, Pair, open_pair, write

INFER, ADMIN = b"infer-key-of-the-tests", b"admin-key-of-the-tests"
KEYS: list[tuple[list[bytes], int]] = [
    ([], 401),
    ([b"another"], 401),
    ([b""], 401),
    ([INFER], 200),
    ([ADMIN], 200),
    ([INFER, ADMIN], 401),
]
ERRORS = [
    ("/v1/attention", b"", 400),
    ("/v1/attention", b"no JSON", 400),
    ("/v1/attention?weights=all", b"{}", 400),
    (V2_PATH, b"", 400),
    (V2_PATH, b"no JSON", 400),
    (V2_PATH, b'{"inputs":[],"parameters":{"sequence_id":1}}', 501),
    ("/v2/models/other/infer", b"no JSON", 404),
    ("/v2/models/demo/versions/2/infer", b"no JSON", 404),
]


def test_errors_are_those_of_the_router(pair: Pair) -> None:
    for path, body, status in ERRORS:
        told = pair.ask(path, body)
        assert told.status == status
        assert json.loads(told.body).keys() == {"error"}
    pair.compare_counts()


def test_an_answer_that_json_cannot_say_is_an_error_of_its_own(pair: Pair) -> None:
    """It was computed, and so it is counted."""
    wild = QUERY.copy()
    wild[1, 2, 3] = np.inf
    entry: dict[str, Any] = {"name": "query", "shape": [2, 5, 6], "datatype": "FP32"}
    entry["parameters"] = {"binary_data_size": wild.nbytes}
    head = write({"inputs": [entry], "outputs": [{"name": "output"}]})
    header = f"Inference-Header-Content-Length: {len(head)}"
    told = pair.ask(V2_PATH, head + wild.tobytes(), header)
    assert told.status == 400
    pair.express.expect(True)
    assert "output 'output' holds NaN or an infinity" in told.line["error"]
    pair.compare_counts()


def test_a_body_beyond_the_bound_is_refused(stack: ExitStack, settings: Settings) -> None:
    body = write(V2)
    pair = open_pair(stack, settings.model_copy(update={"max_request_bytes": len(body) - 1}))
    assert pair.ask(V2_PATH, body).status == 413
    assert pair.ask("/v1/attention", body).status == 413
    pair.compare_counts()


@pytest.mark.parametrize("phase", ["starting", "failed", "draining", "stopping"])
def test_a_server_that_is_not_ready_says_so(pair: Pair, phase: Any) -> None:
    for front in (pair.express, pair.plain):
        front.state.phase = phase
    for path in ("/v1/attention", V2_PATH):
        told = pair.ask(path, write(V1 if "v1" in path else V2))
        assert told.status == (200 if phase == "draining" else 503)
    pair.compare_counts()


@pytest.mark.parametrize("path", ["/v1/attention", V2_PATH])
def test_a_fault_of_ours_is_500_and_no_more_is_said(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("secret")

    monkeypatch.setattr(State, "check_ready", fail)
    request = ask(path, write(V1 if "v1" in path else V2), "Connection: close", "X-Request-Id: a")
    told = [front.ask(request) for front in (pair.express, pair.plain)]
    assert told[0].status == 500
    assert json.loads(told[0].body) == {"error": "the server failed; its log says why"}
    line = told[0].line
    assert (line["level"], line["error"]) == ("ERROR", "RuntimeError: secret")
    # Starlette writes that answer outside of its layers, where the log does not see it.
    assert line.pop("response_bytes") == len(told[0].body)
    assert told[1].line.pop("response_bytes") == 0
    assert told[0] == told[1]


@pytest.fixture(name="keyed")
def start_pair_with_keys(stack: ExitStack, settings: Settings, tmp_path: Path) -> Pair:
    """Both servers, with two keys."""
    path = tmp_path / "keys"
    path.write_text(
        f"infer:{hash_key(INFER).hex()}\nadmin:{hash_key(ADMIN).hex()}\n", encoding="ascii"
    )
    return open_pair(stack, settings.model_copy(update={"api_keys_file": path}))


@pytest.mark.parametrize("path", ["/v1/attention", V2_PATH])
def test_keys_open_and_shut_as_in_the_layer(keyed: Pair, path: str) -> None:
    for keys, status in KEYS:
        headers = [f"Authorization: Bearer {key.decode()}" for key in keys]
        told = keyed.ask(path, write(V1 if "v1" in path else V2), *headers)
        assert told.status == status
        assert ("key" in told.line) is (status == 200)
    keyed.compare_counts()


@pytest.mark.parametrize("path", ["/v1/attention", V2_PATH])
def test_who_has_no_key_is_told_before_the_body_is_read(keyed: Pair, path: str) -> None:
    for front in (keyed.express, keyed.plain):
        with front.server.connect() as client:
            client.sendall(ask(path, bytes(1000))[:-999])
            status, headers, _ = read_answer(client)
            assert (status, headers["www-authenticate"]) == (401, "Bearer")


def test_who_leaves_before_its_answer_is_counted_and_told_in_the_log(
    stack: ExitStack, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("service.http.prompting.PATIENCE_S", 0)
    pair = open_pair(stack, settings)
    for front in (pair.express, pair.plain):
        with front.server.connect() as client:
            client.sendall(ask(V2_PATH, write(V2), "X-Request-Id: mine")[:-1])
            wait_until(lambda front=front: front.state.holdings.bodies.in_use_bytes > 0)  # type: ignore[misc]
        wait_until(lambda front=front: front.log.lines != [])  # type: ignore[misc]
        wait_until(lambda front=front: front.server.departures == ["body"])  # type: ignore[misc]
    first, second = pair.express.log.lines, pair.plain.log.lines
    assert first[-1] == second[-1]
    assert first[-1]["left"] is True
    pair.compare_counts()
