"""What a crowd makes of answers that are whole, cut, absent or refused."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from benchmarks.endurance.crowd import Crowd, Reply, Tally

REQUEST = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody"
WHOLE = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nright"
REFUSAL = b"HTTP/1.1 503 Busy\r\nRetry-After: 1\r\nConnection: close\r\ncontent-length: 2\r\n\r\nno"


@contextmanager
def answering(*answers: bytes) -> Iterator[str]:
    """The address of a server that gives each connection, in turns, one answer, and hangs up.

    A connection that gets a whole answer may ask on, and gets the same again.
    """
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            for answer in answers:
                connection, _ = listener.accept()
                with connection:
                    while connection.recv(len(REQUEST), socket.MSG_WAITALL):
                        connection.sendall(answer)
                        if answer != WHOLE:
                            break

        thread = threading.Thread(target=serve)
        thread.start()
        yield "http://{}:{}".format(*listener.getsockname())
        thread.join()


def ask(url: str, most: int) -> list[Reply]:
    """The replies to requests of one client."""
    replies: list[Reply] = []
    Crowd(url, [REQUEST], replies.append, connections=1, most=most).run()
    return replies


@pytest.mark.parametrize(
    ("answer", "outcome", "status"),
    [
        (REFUSAL, "answered", 503),
        (REFUSAL[:-1], "cut", 0),
        (REFUSAL[:20], "cut", 0),
        (b"", "unanswered", 0),
    ],
    ids=["refusal", "cut body", "cut head", "nothing"],
)
def test_an_answer_that_is_not_whole_is_told_apart(
    answer: bytes, outcome: str, status: int
) -> None:
    with answering(answer) as url:
        (reply,) = ask(url, 1)
    assert (reply.outcome, reply.status) == (outcome, status)


def test_a_connection_that_was_closed_is_replaced() -> None:
    with answering(REFUSAL, b"", REFUSAL) as url:
        replies = ask(url, 3)
    assert [reply.outcome for reply in replies] == ["answered", "unanswered", "answered"]
    assert [reply.number for reply in replies] == [0, 1, 2]
    assert b"\r\nretry-after: 1\r\n" in replies[0].head
    assert replies[2].body == b"no"


def test_where_nobody_listens_requests_are_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = "http://{}:{}".format(*listener.getsockname())
    assert [reply.outcome for reply in ask(url, 2)] == ["refused", "refused"]


def test_a_connection_is_kept_and_the_rate_is_held() -> None:
    tally, started_s = Tally(), time.perf_counter()
    with answering(WHOLE) as url:
        crowd = Crowd(url, [REQUEST], tally.see, connections=1, rate_per_s=50, most=11)
        crowd.run()
    assert time.perf_counter() - started_s >= 0.2
    assert (tally.answered, tally.failed, len(tally.latencies_s)) == (11, 0, 11)


def test_beside_a_block_it_asks_until_the_block_ends() -> None:
    tally = Tally()
    with answering(WHOLE) as url, Crowd(url, [REQUEST], tally.see, connections=1).beside():
        while not tally.answered:
            time.sleep(0.01)
    assert tally.failed == 0


def test_a_fault_of_the_observer_is_raised_at_the_end_of_the_block() -> None:
    def fail(_: Reply) -> None:
        raise ValueError("what it is")

    with (
        answering(WHOLE) as url,
        pytest.raises(RuntimeError, match="the crowd failed") as caught,
        Crowd(url, [REQUEST], fail, connections=1).beside(),
    ):
        time.sleep(0.1)
    assert str(caught.value.__cause__) == "what it is"
