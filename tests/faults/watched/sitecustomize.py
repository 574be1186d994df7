"""Python loads this before a server that is watched: it notes what no server of ours may do.

https://docs.python.org/3/library/audit_events.html. A hook cannot be removed, and code in C that
asks the system itself raises no event: `process_sockets` looks from outside.
"""

import os
import sys

WATCHED = frozenset(
    {
        "ftplib.connect", "http.client.connect", "os.exec", "os.fork", "os.forkpty",
        "os.posix_spawn", "os.spawn", "os.system", "pickle.find_class", "smtplib.connect",
        "socket.connect", "socket.getaddrinfo", "socket.gethostbyaddr", "socket.gethostbyname",
        "socket.sendmsg", "socket.sendto", "subprocess.Popen", "urllib.Request", "webbrowser.open",
    }
)  # fmt: skip


TOUCHES = frozenset({"open", "os.listdir", "os.scandir"})


def watch(path: str, bait: str | None) -> None:
    """Write every event that is watched to a file, one a line.

    Args:
        path: of the file.
        bait: a path; whatever opens one in which it stands is noted as well.
    """
    notes = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def note(event: str, arguments: tuple[object, ...]) -> None:
        if event in WATCHED or (bait and event in TOUCHES and bait in str(arguments[0])):
            os.write(notes, f"{event} {arguments!r}\n".encode())

    sys.addaudithook(note)


if path := os.environ.get("LIMELIGHT_TEST_NOTES"):
    watch(path, os.environ.get("LIMELIGHT_TEST_BAIT"))
