"""uvicorn's side of a connection, with its one error text in our form."""

from typing import Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

NOT_HTTP: Final = b'{"error":"the request is not valid HTTP"}'


class Connection(HttpToolsProtocol):
    """Answers what is not HTTP, which no application gets to see, as all errors are answered."""

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - uvicorn's text for its log
        """Say that the request is not HTTP, and close the connection."""
        head = (
            b"HTTP/1.1 400 Bad Request\r\n"
            b"content-type: application/json\r\n"
            b"content-length: %d\r\n"
            b"connection: close\r\n\r\n" % len(NOT_HTTP)
        )
        self.transport.write(head + NOT_HTTP)
        self.transport.close()
