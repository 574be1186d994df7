"""uvicorn's side of a connection: bounded heads, and errors in our form before any application."""

from typing import Final

import orjson
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

NOT_HTTP: Final = "the request is not valid HTTP"
MAX_HEAD_BYTES: Final = 65536
HEAD_TOO_LARGE: Final = (
    f"the request line and headers are larger than {MAX_HEAD_BYTES} bytes, expected fewer; "
    "options of many bytes go into the body"
)


class Connection(HttpToolsProtocol):
    """Refuses what no application gets to see, in the form of all errors.

    httptools itself collects a head of any size: 189 MiB of headers took 650 MiB of memory.
    """

    _is_in_head = False
    _head_bytes = 0

    def data_received(self, data: bytes) -> None:
        """Take bytes from the client; refuse a head that does not end."""
        super().data_received(data)
        if self._is_in_head:
            self._head_bytes += len(data)
            if self._head_bytes > MAX_HEAD_BYTES and not self.transport.is_closing():
                self._refuse(HEAD_TOO_LARGE)

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        self._is_in_head, self._head_bytes = True, 0

    def on_headers_complete(self) -> None:
        """Its body begins."""
        self._is_in_head = False
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - uvicorn's text for its log
        """Say that the request is not HTTP, and close the connection."""
        self._refuse(NOT_HTTP)

    def _refuse(self, text: str) -> None:
        body = orjson.dumps({"error": text})
        head = (
            b"HTTP/1.1 400 Bad Request\r\n"
            b"content-type: application/json\r\n"
            b"content-length: %d\r\n"
            b"connection: close\r\n\r\n" % len(body)
        )
        self.transport.write(head + body)
        self.transport.close()
