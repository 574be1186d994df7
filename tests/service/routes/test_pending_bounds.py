"""Large answers that are written without a task, and bounds that are full."""

import json
import socket
from collections.abc import Iterator

import numpy as np
import pytest

from service.settings import Settings
from tests.service.http.live_server import ask, read_answer, read_to_end, wait_until
from tests.service.routes.front import Front, open_front
from tests.service.routes.occupied import (
    connect_known,
    expect_nothing_held,
    occupied,
    wait_for_pending,
)
from tests.service.routes.requests import LENGTH, PATH, write


@pytest.fixture(name="front")
def use_front(one_thread: Front) -> Front:
    return one_thread


@pytest.fixture(name="client")
def connect(front: Front) -> Iterator[socket.socket]:
    with connect_known(front) as client:
        yield client


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


def test_one_that_finds_the_queue_full_when_it_is_whole_holds_nothing(settings: Settings) -> None:
    changed = settings.model_copy(update={"inference_threads": 1, "max_queue_requests": 1})
    with open_front(changed) as front, front.server.connect() as client:
        wait_until(lambda: front.server.connections == 1)
        with occupied(front), front.server.connect() as other:
            request = write(id="no head of before")
            client.sendall(request[:-1])
            wait_until(lambda: front.noted.waiting > 0)
            other.sendall(write())
            wait_for_pending(front)
            held = front.state.holdings.bodies.in_use_bytes
            client.sendall(request[-1:])
            assert read_answer(client)[0] == 503
            assert front.state.holdings.bodies.in_use_bytes == held
        expect_nothing_held(front)
