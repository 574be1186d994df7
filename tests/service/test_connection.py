"""What is not HTTP gets an error in the form of all others."""

import json

from service.connection import Connection


class Transport:
    """The socket of a connection."""

    def __init__(self) -> None:
        self.written = b""
        self.closed = False

    def write(self, data: bytes) -> None:
        self.written += data

    def close(self) -> None:
        self.closed = True


def test_what_is_not_http_is_answered_and_the_connection_closed() -> None:
    connection, transport = Connection.__new__(Connection), Transport()
    connection.transport = transport  # type: ignore[assignment] # the part that is used
    connection.send_400_response("Invalid HTTP request received.")
    head, _, body = transport.written.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert f"content-length: {len(body)}".encode() in head
    assert b"content-type: application/json" in head
    assert json.loads(body) == {"error": "the request is not valid HTTP"}
    assert transport.closed
