"""What the kernel knows of a client that is not read from."""

import socket
import struct
import sys
import time
from collections.abc import Iterator

import pytest

from service.http.peer import has_hung_up
from tests.service.http.live_server import ask, serve, wait_until
from tests.service.http.shop import Shop

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells")

Ends = tuple[socket.socket, socket.socket]


@pytest.fixture(name="ends")
def connect() -> Iterator[Ends]:
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname()) as client,
        listener.accept()[0] as accepted,
    ):
        yield accepted, client


def test_a_client_that_stays_is_there(ends: Ends) -> None:
    server, client = ends
    client.sendall(b"unread")
    assert not has_hung_up(server)


def test_a_client_that_closed_is_gone_though_its_last_bytes_are_unread(ends: Ends) -> None:
    server, client = ends
    client.sendall(b"unread")
    client.close()
    wait_until(lambda: has_hung_up(server))


def test_a_client_that_reset_its_connection_is_gone(ends: Ends) -> None:
    server, client = ends
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()
    wait_until(lambda: has_hung_up(server))


def test_of_other_sockets_nobody_can_tell() -> None:
    one, other = socket.socketpair()
    with one, other:
        other.close()
        assert not has_hung_up(one)
    assert not has_hung_up(None)


def test_a_closed_socket_has_nobody_at_its_other_end() -> None:
    closed = socket.socket()
    closed.close()
    assert has_hung_up(closed)


def test_the_work_of_a_client_is_ended_though_requests_wait_behind_it() -> None:
    """While requests wait for answers nothing is read, and so no departure is seen."""
    shop = Shop()
    with serve(shop) as server:
        with server.connect() as client:
            client.sendall(ask("/work") * 2)
            wait_until(lambda: shop.begun == 1)
            time.sleep(0.2)
            assert shop.ended == []
        wait_until(lambda: shop.ended == ["the client left before its answer was ready"])
        assert server.departures == ["work"]
