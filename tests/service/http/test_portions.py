"""Very many chunks are parsed in turns with other connections, and nothing is lost or reordered."""

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.http.connection import Connection
from service.http.portions import PORTION_BYTES
from tests.service.http.live_server import (
    LiveServer,
    ask,
    read_answer,
    read_to_end,
    send_apart,
    serve,
    split,
    wait_until,
)
from tests.service.http.reader import Reader
from tests.service.http.shop import Shop
from tests.service.http.test_connection import NOT_HTTP, read_refusal
from tests.service.http.test_diversion import make_body

MOST_PARTS = PORTION_BYTES // len(b"1\r\nx\r\n") + 1
CHUNKED = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"
MANY = 50_000  # more than a reading of 256 KB holds


def cut_up(body: bytes, size: int) -> bytes:
    """A request whose body comes in chunks of this size."""
    parts = [body[start : start + size] for start in range(0, len(body), size)]
    return CHUNKED + b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + END


@pytest.fixture(name="reader", scope="module")
def make_reader() -> Reader:
    return Reader()


@pytest.fixture(name="server", scope="module")
def start_server(reader: Reader) -> Iterator[LiveServer]:
    with serve(reader) as server:
        yield server


def test_others_have_their_turn_between_the_chunks(
    server: LiveServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A million chunks of a byte kept everyone else waiting for 100 ms, again and again."""
    parts = [0]  # in each turn of the event loop
    take_part = Connection.on_body

    def count_part(self: Connection, body: bytes) -> None:
        if not parts[-1]:
            self.loop.call_soon(parts.append, 0)
        parts[-1] += 1
        take_part(self, body)

    monkeypatch.setattr(Connection, "on_body", count_part)
    with server.connect() as client:
        client.sendall(cut_up(bytes(MANY), 1))
        assert read_answer(client)[2] == str(MANY).encode()
    assert sum(parts) == MANY
    # What is read at the end of a turn may follow the last portion of the reading before.
    assert max(parts) <= 2 * MOST_PARTS


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 9000), st.sampled_from([0, 1, 2, 40])), max_size=6),
    st.lists(st.integers(0, 10**6), max_size=3),
)
def test_requests_of_any_chunks_are_read_whole_and_in_order(
    reader: Reader, server: LiveServer, requests: list[tuple[int, int]], places: list[int]
) -> None:
    bodies = [make_body(size) for size, _ in requests]
    sent = b"".join(
        cut_up(body, chunk) if chunk else ask("/", body)
        for body, (_, chunk) in zip(bodies, requests, strict=True)
    )
    reader.bodies.clear()
    with server.connect() as client:
        send_apart(client, *split(sent or b"\r\n", places))
        for body in bodies:
            assert read_answer(client)[2] == str(len(body)).encode()
    assert reader.bodies == bodies


def test_what_waits_to_be_parsed_is_not_joined_by_more() -> None:
    """Whoever asks for the body asks the connection to read on: it has not parsed what it has."""
    shop = Shop()
    with serve(shop) as server, server.connect() as client:
        client.settimeout(1)
        client.sendall(ask("/work"))
        wait_until(lambda: shop.begun == 1)
        with pytest.raises(TimeoutError):
            client.sendall(cut_up(bytes(5 * 2**20), 1))  # more than the kernel's buffers take
        shop.release.set()


@pytest.mark.parametrize("after", [b"garbage\r\n\r\n", b""])
def test_a_connection_may_end_while_more_is_to_be_parsed(server: LiveServer, after: bytes) -> None:
    unended = cut_up(bytes(MANY), 1)[: -len(END)]
    with server.connect() as client:
        client.sendall(unended + after)
        if after:
            assert read_refusal(read_to_end(client)) == NOT_HTTP
    wait_until(lambda: not server.connections)
    with server.connect() as client:
        client.sendall(ask("/", b"12345"))
        assert read_answer(client)[2] == b"5"
