"""A proxy that serves another server under a prefix, which it strips from the path of a request."""

import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final
from urllib.parse import urlsplit

TIMEOUT_S: Final = 60
# RFC 9110, 7.6.1: headers of one connection alone.
OF_A_CONNECTION: Final = {"connection", "keep-alive", "transfer-encoding"}


@contextmanager
def start_proxy(server_url: str, prefix: str) -> Iterator[str]:
    """The address of a proxy of `server_url`, with the prefix."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            pass_on(self, server_url, prefix)

        do_POST = do_GET

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name given
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as proxy:
        proxy.daemon_threads = True
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{proxy.server_port}{prefix}"
        proxy.shutdown()


def pass_on(handler: BaseHTTPRequestHandler, server_url: str, prefix: str) -> None:
    """Ask the server for what the client wants, and answer with what it says."""
    assert handler.path.startswith(prefix), handler.path
    body = handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
    upstream = http.client.HTTPConnection(urlsplit(server_url).netloc, timeout=TIMEOUT_S)
    path = handler.path.removeprefix(prefix) or "/"
    upstream.request(handler.command, path, body, dict(handler.headers.items()))
    answer = upstream.getresponse()
    content = answer.read()
    handler.send_response(answer.status)
    for name, text in answer.getheaders():
        if name.lower() not in OF_A_CONNECTION:
            handler.send_header(name, text)
    handler.end_headers()
    handler.wfile.write(content)
    upstream.close()
