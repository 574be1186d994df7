"""Requests that would rather speak another protocol than HTTP/1.1."""

from typing import Final

import httptools

# Names of headers that belong to the wish alone (RFC 9110, 7.8; RFC 7540, 3.2.1).
WISHES: Final = (b"upgrade", b"http2-settings")

Headers = list[tuple[bytes, bytes]]


def make_parser(protocol: object) -> httptools.HttpRequestParser:
    """A parser as uvicorn makes it."""
    parser = httptools.HttpRequestParser(protocol)
    # uvicorn: lets requests that are sent behind one with "Connection: close" be ignored.
    parser.set_dangerous_leniencies(lenient_data_after_close=True)
    return parser


def render_head(parser: httptools.HttpRequestParser, url: bytes, headers: Headers) -> bytes:
    """A request's head without its wish, which a server is free to ignore (RFC 9110, 7.8).

    httptools takes the body of such a request for the other protocol and does not parse it. Java's
    HttpClient sends the wish for HTTP/2 with its first request, whatever the method.

    Args:
        parser: that has parsed it.
        url: as it was sent.
        headers: as they were sent, names in lower case.

    Raises:
        httptools.HttpParserError: for the method CONNECT, which is a wish whatever its headers.
    """
    method, version = parser.get_method(), parser.get_http_version()
    if method == b"CONNECT":
        raise httptools.HttpParserError
    lines = [b"%s %s HTTP/%s" % (method, url, version.encode())]
    for name, value in headers:
        if name not in WISHES:
            kept = strip_wishes(value) if name == b"connection" else value
            lines.append(b"%s: %s" % (name, kept))
    return b"\r\n".join([*lines, b"", b""])


def strip_wishes(value: bytes) -> bytes:
    """A Connection header without the words of the wish."""
    words = (word.strip() for word in value.split(b","))
    return b", ".join(word for word in words if word.lower() not in WISHES)
