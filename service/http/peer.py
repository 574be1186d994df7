"""What the kernel knows of the other end of a connection that is not read from."""

import socket
import sys
from typing import Final

# Linux, include/net/tcp_states.h: the first byte of TCP_INFO.
TCP_CLOSE: Final = 7
TCP_CLOSE_WAIT: Final = 8


def has_hung_up(connection: socket.socket | None) -> bool:
    """Whether the client has closed a connection; False where nobody can tell.

    Neither asyncio nor libuv notices where it neither reads nor writes. A client whose last bytes
    did not fit into the kernel's buffer is still there as far as TCP goes.
    """
    if sys.platform != "linux" or connection is None:
        return False
    if connection.family not in (socket.AF_INET, socket.AF_INET6):
        return False
    try:
        state = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0]
    except OSError:
        return True
    return state in (TCP_CLOSE, TCP_CLOSE_WAIT)
