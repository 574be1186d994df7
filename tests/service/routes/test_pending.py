"""Requests that a thread computes while no task waits for them: every way in which they end."""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from model.reference import attend
from model.weights import Weights
from service.engine.lane import Lane
from service.errors import UnavailableError
from service.inference import Schedule
from service.settings import Settings
from tests.service.http.live_server import ask, read_answer, read_to_end, wait_until
from tests.service.routes.front import Front, open_front
from tests.service.routes.test_prompt import LENGTH, PATH, write

GENERATOR = np.random.default_rng(29)
QUERY = GENERATOR.standard_normal((2, 5, 6)).astype(np.float32)


@pytest.fixture(name="front")
def start_front(settings: Settings) -> Iterator[Front]:
    """A server with one thread."""
    with open_front(settings.model_copy(update={"inference_threads": 1})) as front:
        yield front


class Gate:
    """What a thread of the server is busy with."""

    def __init__(self) -> None:
        self.started, self.release = threading.Event(), threading.Event()

    def run(self, items: Any, _: Callable[[], None]) -> Any:
        """Compute until released."""
        self.started.set()
        assert self.release.wait(60)
        return items


@contextmanager
def occupied(front: Front) -> Iterator[Gate]:
    """The thread of the server computes something else meanwhile."""

    class Load:
        rows, size_bytes = 1, 1

    gate = Gate()
    lane: Lane[Any, Any] = Lane(gate.run)
    loop = front.server.opened[0].loop
    loop.call_soon_threadsafe(
        lambda: loop.create_task(front.state.scheduler.submit(lane, Load(), Schedule()))
    )
    assert gate.started.wait(60)
    try:
        yield gate
    finally:
        gate.release.set()


@pytest.fixture(name="client")
def connect(front: Front) -> Iterator[socket.socket]:
    """A connection whose head the server knows."""
    with front.server.connect() as client:
        client.sendall(write())
        assert read_answer(client)[0] == 200
        front.log.lines.clear()
        yield client


def wait_for_pending(front: Front, count: int = 1) -> None:
    """Wait until so many requests are in the queue."""
    wait_until(lambda: front.state.scheduler.waiting == count)
    assert len(front.server.server.server_state.tasks) == count


def expect_nothing_held(front: Front) -> None:
    """No byte of a body or an answer is held, and nothing is pending."""
    holdings = front.state.holdings
    wait_until(lambda: not holdings.bodies.in_use_bytes + holdings.answers.in_use_bytes)
    wait_until(lambda: not front.server.server.server_state.tasks)
    assert front.state.scheduler.waiting == 0


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


def write_large() -> bytes:
    """A request whose binary answer of 12 MB no socket takes at once."""
    query = np.ones((2, 1000, 6), np.float32)
    head = {
        "inputs": [
            {
                "name": "query",
                "shape": query.shape,
                "datatype": "FP32",
                "parameters": {"binary_data_size": query.nbytes},
            }
        ],
        "outputs": [{"name": "attention_weights", "parameters": {"binary_data": True}}],
        "parameters": {"heads": "0"},
    }
    text = json.dumps(head).encode()
    return ask(PATH, text + query.tobytes(), f"{LENGTH}: {len(text)}")


def test_a_large_answer_is_held_until_it_is_taken(front: Front, client: socket.socket) -> None:
    client.sendall(write_large())
    wait_until(lambda: front.state.holdings.answers.in_use_bytes > 0)
    wait_until(lambda: front.server.opened[0].flow.write_paused)
    assert front.state.holdings.bodies.in_use_bytes == 0
    assert front.log.lines == []
    status, _, body = read_answer(client)
    assert (status, len(body) > 8_000_000) == (200, True)
    expect_nothing_held(front)
    wait_until(lambda: len(front.log.lines) == 1)
    client.sendall(write())
    assert read_answer(client)[0] == 200


def test_who_leaves_in_the_midst_of_a_large_answer_holds_nothing(
    front: Front, client: socket.socket
) -> None:
    client.sendall(write_large())
    wait_until(lambda: front.server.opened[0].flow.write_paused)
    client.close()
    expect_nothing_held(front)
    wait_until(lambda: len(front.log.lines) == 1)
    assert front.server.departures == ["answer"]


def test_without_room_for_its_answer_it_waits_as_any_other(settings: Settings) -> None:
    changed = settings.model_copy(update={"max_answer_bytes_in_flight": 1})
    with open_front(changed) as front, front.server.connect() as client:
        client.sendall(write_large())
        assert read_answer(client)[0] == 200
        expect_nothing_held(front)


def test_a_full_queue_refuses_it_unread(settings: Settings) -> None:
    changed = settings.model_copy(update={"inference_threads": 1, "max_queue_requests": 1})
    with open_front(changed) as front, front.server.connect() as client:
        wait_until(lambda: front.server.connections == 1)
        with occupied(front), front.server.connect() as other:
            client.sendall(write())
            wait_for_pending(front)
            request = write()
            head, _, body = request.partition(b"\r\n\r\n")
            other.sendall(head + b"\r\n\r\n" + body[:5])
            status, _, text = read_answer(other)
            assert status == 503
            assert json.loads(text)["error"].startswith("1 requests are waiting already")
        assert read_answer(client)[0] == 200
        expect_nothing_held(front)


def test_its_last_bytes_may_be_an_end_of_the_connection(front: Front) -> None:
    request = write(None, "Connection: close")
    with front.server.connect() as client:
        wait_until(lambda: front.server.connections == 1)
        with occupied(front):
            client.sendall(request)
            wait_for_pending(front)
        assert read_to_end(client).startswith(b"HTTP/1.1 200 ")
    expect_nothing_held(front)
