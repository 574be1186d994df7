"""Requests that a thread computes while no task waits for them: every way in which they end."""

import gc
import json
import socket
from collections.abc import Iterator

import numpy as np
import pytest

from model.reference import attend
from model.weights import Weights
from service.errors import UnavailableError
from service.routes import prompt_reply
from service.settings import Settings
from tests.service.http.live_server import read_answer, wait_until
from tests.service.routes.front import Front, open_front
from tests.service.routes.occupied import (
    connect_known,
    expect_nothing_held,
    occupied,
    wait_for_pending,
)
from tests.service.routes.requests import write

GENERATOR = np.random.default_rng(29)
QUERY = GENERATOR.standard_normal((2, 5, 6)).astype(np.float32)


@pytest.fixture(name="front")
def use_front(one_thread: Front) -> Front:
    return one_thread


@pytest.fixture(name="client")
def connect(front: Front) -> Iterator[socket.socket]:
    with connect_known(front) as client:
        yield client


def test_it_is_answered_with_the_numbers_of_the_reference(
    front: Front, client: socket.socket, weights: Weights
) -> None:
    with occupied(front):
        client.sendall(write({"query": QUERY}))
        wait_for_pending(front)
        assert front.state.holdings.bodies.in_use_bytes > QUERY.nbytes
    status, _, body = read_answer(client)
    answer = {each["name"]: each for each in json.loads(body)["outputs"]}
    wanted, _ = attend(weights, QUERY, QUERY, QUERY)
    found = np.reshape(answer["output"]["data"], answer["output"]["shape"])
    np.testing.assert_allclose(found, wanted, atol=1e-5)
    assert status == 200
    expect_nothing_held(front)


def test_several_connections_are_answered_each_with_its_own(front: Front) -> None:
    queries = [np.float32(n) * QUERY for n in range(1, 7)]
    clients = [front.server.connect() for _ in queries]
    try:
        wait_until(lambda: front.server.connections == len(clients))
        with occupied(front):
            for client, query in zip(clients, queries, strict=True):
                client.sendall(write({"query": query}))
            wait_for_pending(front, len(clients))
        found = [json.loads(read_answer(client)[2])["outputs"][0]["data"] for client in clients]
    finally:
        for client in clients:
            client.close()
    alone = []
    for query in queries:
        with front.server.connect() as client:
            client.sendall(write({"query": query}))
            alone.append(json.loads(read_answer(client)[2])["outputs"][0]["data"])
    assert found == alone
    assert len({tuple(each) for each in found}) == len(queries)
    expect_nothing_held(front)


def test_it_is_counted_and_logged_as_any_other(front: Front, client: socket.socket) -> None:
    before = front.count()
    with occupied(front):
        client.sendall(write())
        wait_for_pending(front)
    read_answer(client)
    wait_until(lambda: len(front.log.lines) == 1)
    (line,) = front.log.lines
    request = write()
    assert line["status"] == 200
    assert line["request_bytes"] == len(request) - request.index(b"\r\n\r\n") - 4
    assert line["shapes"] == {"query": (2, 5, 6)}
    after = front.count()
    name = 'limelight_requests_total{model="demo",outcome="ok",version="1"}'
    assert float(after[name]) - float(before[name]) == 1


@pytest.mark.parametrize(
    ("fault", "status", "text", "outcome"),
    [
        (UnavailableError("no room on the device"), 503, "no room on the device", "503"),
        (RuntimeError("secret"), 500, "the server failed; its log says why", "500"),
    ],
    ids=["one for the client", "one of ours"],
)
def test_a_fault_of_the_run_is_the_answer_and_counted_once(
    front: Front,
    client: socket.socket,
    monkeypatch: pytest.MonkeyPatch,
    fault: Exception,
    status: int,
    text: str,
    outcome: str,
) -> None:
    def fail(*_: object) -> None:
        raise fault

    lane = front.state.find_model("demo").lane
    monkeypatch.setattr(lane, "run", fail)
    monkeypatch.setattr(lane, "run_alone", fail)
    with occupied(front):
        client.sendall(write())
        wait_for_pending(front)
    found, headers, body = read_answer(client)
    assert (found, json.loads(body)["error"]) == (status, text)
    assert (headers.get("connection") == "close") == (status == 500)
    wait_until(lambda: len(front.log.lines) == 1)
    assert front.log.lines[0]["status"] == status
    name = f'limelight_requests_total{{model="demo",outcome="{outcome}",version="1"}}'
    assert float(front.count()[name]) == 1
    expect_nothing_held(front)


def test_who_leaves_is_not_computed_for(
    front: Front, client: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs: list[object] = []
    lane = front.state.find_model("demo").lane
    monkeypatch.setattr(lane, "run", runs.append)
    with occupied(front):
        client.sendall(write())
        wait_for_pending(front)
        client.close()
        wait_until(lambda: front.state.scheduler.waiting == 0)
    wait_until(lambda: len(front.log.lines) == 1)
    assert front.log.lines[0]["left"] is True
    assert front.server.departures == ["work"]
    assert runs == []
    name = 'limelight_requests_total{model="demo",outcome="left",version="1"}'
    assert float(front.count()[name]) == 1
    expect_nothing_held(front)


def test_a_request_that_takes_too_long_is_503_and_leaves_the_queue(settings: Settings) -> None:
    changed = settings.model_copy(update={"inference_threads": 1, "request_timeout_ms": 50})
    with open_front(changed) as front, front.server.connect() as client:
        wait_until(lambda: front.server.connections == 1)
        with occupied(front):
            client.sendall(write())
            status, _, body = read_answer(client)
            assert front.state.scheduler.waiting == 0
        assert status == 503
        assert json.loads(body)["error"] == (
            "the request took longer than 50 ms (LIMELIGHT_REQUEST_TIMEOUT_MS); send less at once, "
            "or try again when the server is less busy"
        )
        expect_nothing_held(front)


def test_what_is_cut_off_at_the_end_of_the_server_is_answered(
    front: Front, client: socket.socket
) -> None:
    with occupied(front):
        client.sendall(write())
        wait_for_pending(front)
        (pending,) = front.server.server.server_state.tasks
        # As uvicorn does with what is left when its time to stop is over.
        front.server.opened[0].loop.call_soon_threadsafe(lambda: pending.cancel(msg="stop"))
        status, _, body = read_answer(client)
    assert status == 503
    assert json.loads(body)["error"] == "the server stopped before the request was answered"
    expect_nothing_held(front)


def test_one_that_is_sent_meanwhile_on_the_same_connection_is_answered_after_it(
    front: Front, client: socket.socket
) -> None:
    with occupied(front):
        client.sendall(write(id="1"))
        wait_for_pending(front)
        client.sendall(write(id="2") + write(id="3"))
    assert [json.loads(read_answer(client)[2])["id"] for _ in range(3)] == ["1", "2", "3"]
    expect_nothing_held(front)


def test_where_the_answer_cannot_be_written_the_connection_ends(
    front: Front,
    client: socket.socket,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(_: object) -> str:
        raise RuntimeError("no id")

    with occupied(front):
        client.sendall(write())
        wait_for_pending(front)
        monkeypatch.setattr(prompt_reply, "choose_id", fail)
    assert client.recv(1) == b""
    expect_nothing_held(front)
    assert "an answer could not be sent" in caplog.messages


def test_requests_leave_no_circles(front: Front, client: socket.socket) -> None:
    """Or the collector, which looks for them seldom, would let them pile up."""
    requests = 40
    gc.collect()
    gc.disable()
    try:
        for _ in range(requests):
            client.sendall(write())
            assert read_answer(client)[0] == 200
        with occupied(front):
            client.sendall(write())
            wait_for_pending(front)
        read_answer(client)
        expect_nothing_held(front)
        assert gc.collect() < 5 * requests
    finally:
        gc.enable()
