"""A connection that feeds an inlet by hand."""

import asyncio
from types import SimpleNamespace
from typing import Any

from service.http.budget import Account, Budget
from service.http.buffer_pool import BufferPool
from service.http.inlet import Inlet


class Flow:
    """Whether the connection is read from."""

    def __init__(self) -> None:
        self.is_paused = False

    def pause_reading(self) -> None:
        self.is_paused = True

    def resume_reading(self) -> None:
        self.is_paused = False


class Line:
    """Stands for a connection: feeds the inlet, and notes how its reading ended."""

    def __init__(self) -> None:
        self.flow = Flow()
        self.loop = asyncio.get_running_loop()
        self.reader: Any = None
        self.ends: list[bytes | None] = []
        self.calls: list[str] = []

    def divert(self, protocol: Inlet) -> None:
        self.reader = protocol

    def end_body(self, *, is_parsed: bool) -> None:
        self.reader = None
        self.ends.append(None if is_parsed else b"unparsed, whole")

    def skip_unparsed_body(self) -> None:
        self.reader = None
        self.ends.append(b"unparsed")

    def skip_body(self, data: memoryview) -> None:
        self.reader = None
        self.ends.append(bytes(data))

    def __getattr__(self, name: str) -> Any:
        return lambda *arguments: self.calls.append(" ".join([name, *map(str, arguments)]))

    async def feed(self, data: bytes, piece_bytes: int) -> bytes:
        """Write into the inlet as a transport does; returns what it did not take."""
        for _ in range(len(data)):
            if self.reader is None or self.flow.is_paused or not data:
                break
            buffer = self.reader.get_buffer(-1)
            count = min(len(buffer), piece_bytes, len(data))
            buffer[:count] = data[:count]
            self.reader.buffer_updated(count)
            data = data[count:]
            await asyncio.sleep(0)
        return data


def make_cycle(body: bytes, *, more_body: bool = True) -> Any:
    return SimpleNamespace(body=bytearray(body), more_body=more_body)


def make_inlet(line: Line, arrived: bytes, size: int, *, more_body: bool = True) -> Inlet:
    connection: Any = line
    return Inlet(connection, make_cycle(arrived, more_body=more_body), size)


def open_account(max_bytes: int = 2**20, timeout_s: float = 10) -> Account:
    return Budget("request bodies", "LIMELIGHT_X", max_bytes, 0, timeout_s).open()


def begin(inlet: Inlet, account: Account, timeout_s: float | None) -> asyncio.Task[memoryview]:
    """Begin to read a body."""
    return asyncio.create_task(inlet.read(account, timeout_s, BufferPool()))
