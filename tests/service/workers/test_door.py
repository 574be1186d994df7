"""Connections that several workers may take."""

import asyncio
import errno
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from service.workers.door import Door

PATIENCE_S = 60


class Greeter(asyncio.Protocol):
    """Says who has taken a connection, and closes it."""

    def __init__(self, name: bytes) -> None:
        self._name = name

    def connection_made(self, transport: Any) -> None:
        transport.write(self._name)
        transport.close()


@pytest.fixture(name="listener")
def listen() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener


def open_door(listener: socket.socket, name: bytes, *, is_my_turn: bool = True) -> Door:
    """The door of a worker."""
    return Door(listener, lambda: Greeter(name), lambda: is_my_turn, lambda: None)


async def call(listener: socket.socket) -> bytes:
    """Who takes the next connection."""
    reader, writer = await asyncio.open_connection(*listener.getsockname())
    name = await asyncio.wait_for(reader.read(), PATIENCE_S)
    writer.close()
    await writer.wait_closed()
    return name


async def test_connections_are_taken_one_after_the_other_and_counted(
    listener: socket.socket,
) -> None:
    taken: list[int] = []
    door = Door(listener, lambda: Greeter(b"me"), lambda: True, lambda: taken.append(1))
    assert await asyncio.gather(*(call(listener) for _ in range(5))) == [b"me"] * 5
    assert len(taken) == 5
    door.close()
    await door.wait_closed()


async def test_a_worker_whose_turn_it_is_not_takes_what_no_other_takes(
    listener: socket.socket,
) -> None:
    door = open_door(listener, b"me", is_my_turn=False)
    assert [await call(listener) for _ in range(3)] == [b"me"] * 3
    door.close()


async def test_a_worker_whose_turn_it_is_goes_first(listener: socket.socket) -> None:
    with listener.dup() as copy:
        doors = [open_door(listener, b"other", is_my_turn=False), open_door(copy, b"next")]
        assert [await call(listener) for _ in range(5)] == [b"next"] * 5
        for door in doors:
            door.close()


async def test_a_door_that_is_closed_takes_nothing(listener: socket.socket) -> None:
    with listener.dup() as copy:
        for is_my_turn in (True, False):
            open_door(listener, b"me", is_my_turn=is_my_turn).close()
            door = open_door(copy, b"other")
            assert await call(listener) == b"other"
            door.close()


class Exhausted(socket.socket):
    """A listening socket for which there are no descriptors at first."""

    faults = 0

    def accept(self) -> Any:
        if self.faults < 2:
            self.faults += 1
            raise OSError(errno.EMFILE, "Too many open files")
        return super().accept()


async def test_without_descriptors_it_goes_on_when_there_are_some() -> None:
    with Exhausted() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        door = open_door(listener, b"me")
        assert await call(listener) == b"me"
        assert listener.faults == 2
        door.close()
