"""A network of a test's own: nothing in it can be reached from outside, nor reaches anything."""

import ctypes
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import Final

CLONE_NEWNET: Final = 0x40000000  # linux/sched.h
LISTENING: Final = "0A"  # include/net/tcp_states.h
HOST: Final = "10.9.8.7"
ENTER: Final = ("unshare", "--net", "--pid", "--fork", "--mount-proc")


def may_have_networks() -> bool:
    """Whether this account may make networks; that of root, or the root of ``unshare -r``."""
    try:
        done = subprocess.run([*ENTER, "true"], check=False, capture_output=True)
    except FileNotFoundError:
        return False
    return done.returncode == 0


@contextmanager
def own_network(*, host: bool = False) -> Iterator[None]:
    """What this thread opens and starts is in a network with a loopback interface alone.

    Sockets that are open stay where they were made.

    Args:
        host: whether the machine has an address, and a route to others, beside the loopback ones.
    """
    before = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    libc = ctypes.CDLL(None, use_errno=True)
    check(libc.unshare(CLONE_NEWNET))
    try:
        run("link", "set", "lo", "up")
        if host:
            run("address", "add", f"{HOST}/32", "dev", "lo")
            run("route", "add", "default", "dev", "lo", "src", HOST)
        yield
    finally:
        check(libc.setns(before, CLONE_NEWNET))
        os.close(before)


def run(*arguments: str) -> None:
    """Run ``ip``."""
    command = ["ip", *arguments]
    subprocess.run(command, check=True, capture_output=True)


def check(code: int) -> None:
    """Raise what the C library says went wrong."""
    if code:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def find_listeners() -> list[tuple[IPv4Address | IPv6Address, int]]:
    """Address and port of all that listens in this thread's network.

    https://docs.kernel.org/networking/proc_net_tcp.html: each 4 bytes are a number of the machine,
    taken for little-endian.
    """
    lines = [
        line.split()
        for name in ("tcp", "tcp6")
        for line in Path(f"/proc/thread-self/net/{name}").read_text().splitlines()[1:]
    ]
    return [read_place(fields[1]) for fields in lines if fields[3] == LISTENING]


def read_place(text: str) -> tuple[IPv4Address | IPv6Address, int]:
    """Address and port, such as ``0100007F:1F40``."""
    digits, port = text.split(":")
    words = [bytes.fromhex(digits[at : at + 8])[::-1] for at in range(0, len(digits), 8)]
    address = ip_address(b"".join(words))
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address, int(port, 16)
