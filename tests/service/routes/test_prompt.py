"""What is answered at once, what is not, and that nobody can tell."""

import json
import socket
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from model.reference import attend
from model.weights import Weights
from service.engine.lane import Lane
from service.engine.model import Model
from service.routes.prompt import MAX_HELD_BYTES
from service.settings import Settings
from service.state import State
from tests.service.http.live_server import ask, read_answer, read_to_end, wait_until
from tests.service.routes.front import Front, open_front
from tests.service.routes.occupied import occupied
from tests.service.routes.requests import PATH, QUERY, write

GENERATOR = np.random.default_rng(23)
KEY, VALUE = GENERATOR.standard_normal((2, 2, 7, 6)).astype(np.float32)
MASK = GENERATOR.random((2, 3, 5, 7)) > 0.4


@pytest.fixture(name="front")
def start_front(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[Front]:
    """A server that never loses its patience."""
    monkeypatch.setattr("service.http.prompting.PATIENCE_S", 600)
    with open_front(settings) as front:
        yield front


def read(client: socket.socket) -> tuple[int, dict[str, Any]]:
    """Status and JSON of an answer."""
    status, _, body = read_answer(client)
    return status, json.loads(body)


def ask_once(front: Front, request: bytes) -> tuple[int, dict[str, Any]]:
    """Status and JSON of an answer, from a connection of its own; nothing runs behind it."""
    with front.server.connect() as client:
        client.sendall(request)
        found = read(client)
    wait_until(lambda: not front.server.server.server_state.tasks)
    return found


def test_the_numbers_are_those_of_the_reference_whatever_came_before(
    front: Front, weights: Weights
) -> None:
    """The second request of a layout, and the third, are read by what was kept of the first."""
    for turn in range(1, 5):
        query, mask = np.float32(turn) * QUERY, np.roll(MASK, turn)
        request = write({"query": query, "key": KEY, "value": VALUE, "mask": mask})
        status, answer = ask_once(front, request)
        assert status == 200
        outputs = {
            each["name"]: np.reshape(each["data"], each["shape"]) for each in answer["outputs"]
        }
        wanted, wanted_weights = attend(weights, query, KEY, VALUE, mask=mask)
        np.testing.assert_allclose(outputs["output"], wanted, atol=1e-5)
        np.testing.assert_allclose(outputs["attention_weights"], wanted_weights, atol=1e-6)
    front.expect(*[True] * 4)


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        pytest.param(write({}, "Accept-Encoding: gzip"), 400, id="an answer in a coding"),
        pytest.param(write(parameters={"timeout": 10**9}), 200, id="a timeout"),
        pytest.param(write(id="x" * MAX_HELD_BYTES), 200, id="a long id"),
        pytest.param(write({"query": np.ones((1, 90, 6), np.float32)}), 200, id="a large answer"),
        pytest.param(write(path="/v2/models/demo/versions/2/infer"), 404, id="another version"),
        pytest.param(write({"query": QUERY[0]}), 400, id="another shape"),
        pytest.param(ask(PATH, b"no JSON"), 400, id="no JSON"),
    ],
)
def test_what_has_to_be_waited_for_or_refused_is_answered_as_usual_and_counted_once(
    front: Front, request_: bytes, status: int
) -> None:
    before = front.count()
    assert ask_once(front, request_)[0] == status
    # What is for no model is not held, nor what wants a coding.
    front.expect(*[False] * (status != 404 and b"gzip" not in request_))
    after = front.count()
    changed = {name: float(after[name]) - float(before.get(name, 0)) for name in after}
    outcomes = {n: c for n, c in changed.items() if n.startswith("limelight_requests_total") and c}
    # Nobody counts requests to models that are not served.
    assert sum(outcomes.values()) == (status != 404)


def test_an_id_is_echoed(front: Front) -> None:
    status, answer = ask_once(front, write(id="7"))
    assert (status, answer["id"]) == (200, "7")
    front.expect(True)


def test_while_a_thread_computes_nothing_is_computed_in_the_event_loop(front: Front) -> None:
    with front.server.connect() as client:
        wait_until(lambda: front.server.connections == 1)
        with occupied(front):
            client.sendall(write())
            assert read(client)[0] == 200
        wait_until(lambda: not front.server.server.server_state.tasks)
    front.expect(False)


def test_a_model_that_goes_between_head_and_body_answers_still(front: Front) -> None:
    request = write()
    with front.server.connect() as client:
        client.sendall(request[:-1])
        wait_until(lambda: front.noted.waiting > 0)
        front.state.repository.exchange([], [("demo", "1")])
        client.sendall(request[-1:])
        assert read(client)[0] == 200


def test_a_server_that_begins_to_stop_between_head_and_body_finishes_what_it_took(
    front: Front,
) -> None:
    request = write()
    with front.server.connect() as client:
        client.sendall(request[:-1])
        wait_until(lambda: front.noted.waiting > 0)
        front.state.phase = "stopping"
        client.sendall(request[-1:])
        assert read(client)[0] == 200


@pytest.mark.parametrize(
    ("owner", "name"),
    [(Model, "check"), (Lane, "run_alone"), (State, "find_model")],
    ids=lambda each: getattr(each, "__name__", each),
)
def test_a_fault_at_any_stage_is_told_to_the_log_and_answered_as_usual(
    front: Front,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    owner: Any,
    name: str,
) -> None:
    target = front.state.find_model("demo").lane if owner is Lane else owner
    usual, failures = getattr(target, name), [RuntimeError("secret")]

    def fail(*arguments: Any, **options: Any) -> Any:
        if failures:  # the next try is as usual
            raise failures.pop()
        return usual(*arguments, **options)

    monkeypatch.setattr(target, name, fail)
    assert ask_once(front, write())[0] == 200
    held = [] if owner is State else [False]
    front.expect(*held)
    texts = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert texts == [f"a request was not {'answered at once' if held else 'held'}"]
    assert ask_once(front, write())[0] == 200
    front.expect(*held, True)


def test_a_fault_that_stays_is_500_and_the_connection_closed(
    front: Front, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("secret")

    monkeypatch.setattr(Model, "check", fail)
    with front.server.connect() as client:
        client.sendall(write() + write())
        answers = read_to_end(client)
    assert answers.count(b"HTTP/1.1 ") == 1
    assert answers.startswith(b"HTTP/1.1 500 ")
    assert b"secret" not in answers


def test_requests_sent_ahead_are_answered_in_order(front: Front) -> None:
    wishes = [f"r{number}" for number in range(40)]
    with front.server.connect() as client:
        client.sendall(b"".join(write(id=wish) for wish in wishes))
        assert [read(client)[1]["id"] for _ in wishes] == wishes
    front.expect(True)


def change_length(request: bytes, change: int) -> bytes:
    """A request that announces more bytes, or fewer, than its tensors have."""
    head, _, body = request.partition(b"\r\n\r\n")
    length = b"\r\nContent-Length: %d"
    return head.replace(length % len(body), length % (len(body) + change)) + b"\r\n\r\n" + body


def test_a_length_that_is_too_large_is_refused_and_the_next_request_is_not(front: Front) -> None:
    with front.server.connect() as client:
        client.sendall(change_length(write(), 3) + b"abc")
        status, answer = read(client)
        assert status == 400
        assert "3 bytes" in answer["error"]
        wait_until(lambda: not front.server.server.server_state.tasks)
        client.sendall(write())
        assert read(client)[0] == 200
    front.expect(False, True)


def test_what_is_left_of_a_body_whose_length_is_too_small_is_no_request(front: Front) -> None:
    with front.server.connect() as client:
        client.sendall(change_length(write(), -3))
        answers = read_to_end(client)
    assert answers.count(b"HTTP/1.1 ") == answers.count(b"HTTP/1.1 400 ") > 0


@pytest.mark.parametrize(
    "smuggled",
    [
        "Content-Length: 7",
        "Transfer-Encoding: chunked",
        "Transfer-Encoding : chunked",
        "Content-Length : 7",
    ],
)
def test_a_request_that_two_readers_may_end_in_two_places_is_refused(
    front: Front, smuggled: str
) -> None:
    with front.server.connect() as client:
        client.sendall(write(None, smuggled))
        assert read_to_end(client).startswith(b"HTTP/1.1 400 ")
    front.expect()


def test_a_client_that_shuts_its_side_behind_its_request_still_gets_its_answer(
    front: Front,
) -> None:
    with front.server.connect() as client:
        client.sendall(write())
        client.shutdown(socket.SHUT_WR)
        answer = read_to_end(client)
    assert answer == b"" or answer.startswith(b"HTTP/1.1 200 ")
    wait_until(lambda: front.server.connections == 0)


@pytest.mark.parametrize("headers", [[], ["Accept-Encoding: gzip"]], ids=["at once", "as usual"])
def test_nothing_is_held_of_a_request_that_was_answered(front: Front, headers: list[str]) -> None:
    """A connection keeps its last scope: a model in it would outlive its unloading."""
    with front.server.connect() as client:
        client.sendall(write(None, *headers, outputs=[{"name": "output"}]))
        assert read_answer(client)[0] == 200
        held = front.state.holdings
        assert held.bodies.in_use_bytes == held.answers.in_use_bytes == 0
        (connection,) = front.server.opened
        wait_until(lambda: connection.cycle.body == b"")
        assert not any(isinstance(each, Model) for each in connection.scope["state"].values())
    front.expect(*[True] * (not headers))
