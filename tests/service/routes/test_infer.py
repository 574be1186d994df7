"""The endpoint of the Open Inference Protocol, before a body is read."""

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from service.errors import UnavailableError
from service.routes.infer import SHORT_BYTES
from service.settings import Settings
from tests.service.http.live_server import ask, read_answer
from tests.service.routes.front import Front, open_front

PATH = "/v2/models/demo/infer"
LENGTH = "Inference-Header-Content-Length"
FULL = "8 requests are waiting already"


@pytest.fixture(name="front")
def start_front(settings: Settings) -> Iterator[Front]:
    with open_front(settings) as front:
        yield front


def write(size_bytes: int) -> tuple[bytes, bytes]:
    """Head and body of a request whose tensor is about as long, and of no use to the model."""
    data = np.zeros((1, size_bytes // 28, 7), np.float32)
    entry: dict[str, Any] = {"name": "query", "shape": data.shape, "datatype": "FP32"}
    entry["parameters"] = {"binary_data_size": data.nbytes}
    text = json.dumps({"inputs": [entry]}).encode()
    request = ask(PATH, text + data.tobytes(), f"{LENGTH}: {len(text)}")
    end = request.index(b"\r\n\r\n") + 4
    return request[:end], request[end:]


def test_a_request_that_would_find_the_queue_full_is_refused_unread_and_counted(
    front: Front, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> None:
        raise UnavailableError(FULL)

    head, body = write(SHORT_BYTES // 2)
    with front.server.connect() as client:
        with monkeypatch.context() as full:
            full.setattr(front.state.scheduler, "check_room", refuse)
            client.sendall(head)
            status, _, text = read_answer(client)
        assert (status, json.loads(text)) == (503, {"error": FULL})
        client.sendall(body + head + body)  # the connection is as good as any
        status, _, text = read_answer(client)
    assert (status, b"expected [batch_size, query_length, 6]" in text) == (400, True)
    rejected = front.state.statistics.read("demo", "1").failures
    assert (rejected["REJECTED"], rejected["OTHER"]) == (1, 1)


def test_a_long_body_is_waited_for_as_there_may_be_room_when_it_is_whole(
    front: Front, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[None] = []
    monkeypatch.setattr(front.state.scheduler, "check_room", lambda: asked.append(None))
    for size_bytes, looks in ((SHORT_BYTES // 2, 1), (SHORT_BYTES + 100, 1)):
        with front.server.connect() as client:
            client.sendall(b"".join(write(size_bytes)))
            assert read_answer(client)[0] == 400
        assert len(asked) == looks
