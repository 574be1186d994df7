"""What no application gets to see is answered in the form of all errors."""

import json

import pytest
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from service.connection import MAX_HEAD_BYTES, Connection


class Transport:
    """The socket of a connection."""

    def __init__(self) -> None:
        self.written = b""
        self.closed = False

    def write(self, data: bytes) -> None:
        self.written += data

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed


@pytest.fixture
def connection(monkeypatch: pytest.MonkeyPatch) -> Connection:
    """A connection whose parser sees nothing: a test says where in a request it is."""
    for name in ("data_received", "on_message_begin", "on_headers_complete"):
        monkeypatch.setattr(HttpToolsProtocol, name, lambda *_: None)
    made = Connection.__new__(Connection)
    made.transport = Transport()  # type: ignore[assignment] # the part that is used
    return made


def read(connection: Connection) -> str:
    """The text of the error that was written."""
    transport = connection.transport
    assert isinstance(transport, Transport)
    assert transport.closed
    head, _, body = transport.written.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert f"content-length: {len(body)}".encode() in head
    assert b"content-type: application/json" in head
    return str(json.loads(body)["error"])


def test_what_is_not_http_is_answered_and_the_connection_closed(connection: Connection) -> None:
    connection.send_400_response("Invalid HTTP request received.")
    assert read(connection) == "the request is not valid HTTP"


def test_a_head_beyond_the_bound_is_refused(connection: Connection) -> None:
    connection.on_message_begin()
    connection.data_received(bytes(MAX_HEAD_BYTES))
    assert not connection.transport.is_closing()
    connection.data_received(b"x")
    assert read(connection) == (
        "the request line and headers are larger than 65536 bytes, expected fewer; options of "
        "many bytes go into the body"
    )


def test_a_body_is_not_part_of_the_head_and_each_head_counts_for_itself(
    connection: Connection,
) -> None:
    for _ in range(3):
        connection.on_message_begin()
        connection.data_received(bytes(MAX_HEAD_BYTES))
        connection.on_headers_complete()
        connection.data_received(bytes(10 * MAX_HEAD_BYTES))
    assert not connection.transport.is_closing()
