"""A lean HTTP client: prepared bytes out, bytes in, nothing parsed but the length.

A client library costs more than a small request itself, and would be measured with the server.
"""

import contextlib
import selectors
import socket
import time
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

TIMEOUT_S: Final = 120
END_OF_HEAD: Final = b"\r\n\r\n"
LENGTH: Final = b"\r\ncontent-length: "  # not inference-header-content-length
START_BYTES: Final = 65536


class Connection:
    """One keep-alive connection that sends the same request again and again, or another.

    Args:
        url: of the server.
        request: all its bytes.
        any_status: whether answers of another status than 200 are fine too.
    """

    def __init__(self, url: str, request: bytes, *, any_status: bool = False) -> None:
        parts = urlsplit(url)
        self.socket = socket.create_connection((parts.hostname or "", parts.port or 80), TIMEOUT_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._request = memoryview(request)
        self._any_status = any_status
        self._answer = bytearray(START_BYTES)
        self._sent_bytes = self._received = self._body_start = 0
        self._expected: int | None = None
        self.is_sent = False
        self.started_s = 0.0

    def ask(self) -> memoryview:
        """Send the request, and wait for the whole answer.

        Raises:
            RuntimeError: if the status is not 200.
            ConnectionResetError: if the server closes.
        """
        self.begin()
        self.socket.sendall(self._request)
        while not self.receive():
            pass
        return self.body

    def begin(self, request: bytes | None = None) -> None:
        """Forget the last answer.

        Args:
            request: to send from now on; the same unless given.
        """
        if request is not None:
            self._request = memoryview(request)
        self._sent_bytes = self._received = 0
        self._expected = None
        self.is_sent = False
        self.started_s = time.perf_counter()

    def send(self) -> None:
        """Send what the socket takes."""
        self._sent_bytes += self.socket.send(self._request[self._sent_bytes :])
        self.is_sent = self._sent_bytes == len(self._request)

    def receive(self) -> bool:
        """Receive what has come; whether the answer is whole.

        Raises:
            RuntimeError: if the status is not 200.
            ConnectionResetError: if the server closes.
        """
        count = self.socket.recv_into(memoryview(self._answer)[self._received :])
        if not count:
            raise ConnectionResetError("the server closed the connection")
        self._received += count
        if self._expected is None:
            self._read_head()
        return self._received == self._expected

    def _read_head(self) -> None:
        head_bytes = self._answer.find(END_OF_HEAD, 0, self._received)
        if head_bytes < 0:
            return
        if not self._any_status and not self._answer.startswith(b"HTTP/1.1 200 "):
            raise RuntimeError(bytes(self._answer[: self._received]).decode(errors="replace"))
        start = self._answer.index(LENGTH, 0, head_bytes) + len(LENGTH)
        body_bytes = int(self._answer[start : self._answer.index(b"\r\n", start)])
        self._body_start = head_bytes + len(END_OF_HEAD)
        self._expected = self._body_start + body_bytes
        if len(self._answer) <= self._expected:
            self._answer.extend(bytes(self._expected + 1 - len(self._answer)))

    @property
    def has_begun(self) -> bool:
        """Whether a part of the answer has come."""
        return self._received > 0

    @property
    def head(self) -> bytes:
        """Status line and headers of the last answer, in lower case."""
        return bytes(self._answer[: self._body_start]).lower()

    @property
    def status(self) -> int:
        """Status of the last answer."""
        return int(self.head.split(b" ", 2)[1])

    @property
    def body(self) -> memoryview:
        """The body of the last answer; overwritten by the next one."""
        return memoryview(self._answer)[self._body_start : self._received]

    def close(self) -> None:
        """Close the connection."""
        self.socket.close()


@dataclass
class Load:
    """What a closed loop over several connections saw.

    Attributes:
        latencies_s: of every answer.
        duration_s: of the whole.
    """

    latencies_s: list[float] = field(default_factory=list)
    duration_s: float = 0.0

    @property
    def per_second(self) -> float:
        """Answers per second."""
        return len(self.latencies_s) / self.duration_s


def run_load(url: str, request: bytes, connections: int, round_s: float) -> Load:
    """Keep `connections` requests in flight for `round_s` seconds, from one thread.

    Raises:
        RuntimeError: if a status is not 200.
        ConnectionResetError: if the server closes.
    """
    load, waiting = Load(), selectors.DefaultSelector()
    opened = [Connection(url, request) for _ in range(connections)]
    begun_s = time.perf_counter()
    for connection in opened:
        connection.socket.setblocking(False)
        connection.begin()
        waiting.register(connection.socket, selectors.EVENT_WRITE, connection)
    while waiting.get_map():
        for key, _ in waiting.select():
            connection = key.data
            if connection.is_sent and connection.receive():
                load.latencies_s.append(time.perf_counter() - connection.started_s)
                if time.perf_counter() >= begun_s + round_s:
                    waiting.unregister(connection.socket)
                    continue
                connection.begin()
            if not connection.is_sent:
                send_part(connection, waiting)
    load.duration_s = time.perf_counter() - begun_s
    for connection in opened:
        connection.close()
    return load


def send_part(connection: Connection, waiting: selectors.BaseSelector) -> None:
    """Send what the socket takes, and wait for its next turn."""
    with contextlib.suppress(BlockingIOError):
        connection.send()
    events = selectors.EVENT_READ if connection.is_sent else selectors.EVENT_WRITE
    if waiting.get_key(connection.socket).events != events:
        waiting.modify(connection.socket, events, connection)
