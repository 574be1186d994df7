"""An answer says when its client has taken it."""

import numpy as np
import pytest
from starlette.types import Message

from service.http.replies import render_error
from service.inference import Answer, Times
from service.routes.answers import BUFFERED_BYTES, AnswerResponse, get_parts, respond

ANSWER = Answer(
    {"output": np.zeros((2, 3, 4), np.float32)},
    "fused_bias",
    "demo",
    "1",
    times=Times(queue_ns=1_500_000, infer_ns=2_000_000),
)


async def receive() -> Message:
    return {"type": "http.disconnect"}


def test_it_carries_its_times_and_its_graph() -> None:
    response = respond((b"te", b"xt"), {"Content-Type": "text/plain"}, ANSWER)
    assert response.headers["Server-Timing"] == "queue;dur=1.500, compute;dur=2.000"
    assert response.headers["Limelight-Graph"] == "fused_bias"
    assert response.headers["Content-Length"] == "4"


@pytest.mark.parametrize("size_bytes", [3, BUFFERED_BYTES, BUFFERED_BYTES + 1])
async def test_all_of_it_is_sent_before_it_counts_as_taken(size_bytes: int) -> None:
    sent: list[Message] = []
    taken: list[int] = []

    async def send(message: Message) -> None:
        assert not taken
        sent.append(message)

    content = b"x" * size_bytes
    response = respond((content[:1], memoryview(content)[1:]), {}, ANSWER)
    response.on_taken = lambda: taken.append(len(sent))
    await response({"type": "http"}, receive, send)
    assert b"".join(each.get("body", b"") for each in sent) == content
    assert dict(sent[0]["headers"])[b"content-length"] == str(size_bytes).encode()
    # It ends with a message that waits until the transport has room again.
    assert [each["more_body"] for each in sent[1:]] == [True, True, False]
    assert taken == [len(sent)]


async def test_a_client_that_left_counts_as_one_that_took_it() -> None:
    taken: list[bool] = []

    async def send(_: Message) -> None:
        raise OSError

    response = AnswerResponse((b"text",), {})
    response.on_taken = lambda: taken.append(True)
    with pytest.raises(OSError):  # noqa: PT011 - the one above
        await response({"type": "http"}, receive, send)
    assert taken == [True]


def test_a_header_may_hold_any_byte_and_its_name_is_written_in_lower_case() -> None:
    response = AnswerResponse((b"one", b"three"), {"Limelight-Graph": "caf\xe9"})
    assert response.raw_headers == [(b"content-length", b"8"), (b"limelight-graph", b"caf\xe9")]
    assert response.size_bytes == 8


def test_an_answer_and_an_error_have_their_bodies_in_parts() -> None:
    assert get_parts(AnswerResponse((b"one", b"three"), {})) == (b"one", b"three")
    assert get_parts(render_error("mine", 400, {})) == (b'{"error":"mine"}',)
