"""The sockets of a running process, as Linux tells them: what it is connected to, from outside."""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PROC: Final = Path("/proc")
TABLES: Final = ("tcp", "tcp6", "udp", "udp6", "raw", "raw6", "icmp", "icmp6")
LISTEN: Final = "0A"  # include/net/tcp_states.h
INTERVAL_S: Final = 0.005


@dataclass(frozen=True)
class Socket:
    """One socket.

    Attributes:
        kind: tcp, udp or another of `TABLES`.
        local_port: on this machine.
        remote_port: at the other end; 0 if there is none.
        is_listening: whether it takes connections.
    """

    kind: str
    local_port: int
    remote_port: int
    is_listening: bool


def list_sockets(pid: int) -> set[Socket]:
    """The internet sockets of a process, proc(5)."""
    own = set(list_inodes(pid))
    found = set()
    for kind in TABLES:
        table = PROC / str(pid) / "net" / kind
        for line in table.read_text().splitlines()[1:] if table.exists() else ():
            words = line.split()
            local, remote, state, inode = words[1], words[2], words[3], words[9]
            if inode in own:
                ports = [int(address.rpartition(":")[2], 16) for address in (local, remote)]
                found.add(Socket(kind, ports[0], ports[1], state == LISTEN and kind[:3] == "tcp"))
    return found


def list_inodes(pid: int) -> Iterator[str]:
    """The inodes of the sockets that a process holds."""
    for entry in (PROC / str(pid) / "fd").iterdir():
        try:
            target = str(entry.readlink())
        except FileNotFoundError:  # closed meanwhile
            continue
        if inode := re.fullmatch(r"socket:\[(\d+)\]", target):
            yield inode[1]


@contextmanager
def watch_sockets(pid: int) -> Iterator[set[Socket]]:
    """All sockets that a process is seen with during a block."""
    seen: set[Socket] = set()
    is_over = threading.Event()

    def look() -> None:
        while not is_over.wait(INTERVAL_S):
            seen.update(list_sockets(pid))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield seen
    finally:
        is_over.set()
        thread.join()
