"""Files that the process may open: each connection is one."""

import resource
from typing import Final

from service.errors import StartError
from service.http.surplus import MAX_SURPLUS

OTHER_FILES: Final = 128  # models, libraries, the log, the event loop


def allow_connections(max_connections: int) -> None:
    """Let the process hold that many connections open, and those that wait for their refusal.

    Without descriptors left, uvloop closes new connections as they come: their clients would see a
    reset instead of a refusal, and models could not be loaded.

    Raises:
        StartError: if the system does not allow so many.
    """
    needed = max_connections + MAX_SURPLUS + OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if is_enough(soft, needed):
        return
    if not is_enough(hard, needed):
        most = hard - MAX_SURPLUS - OTHER_FILES
        cure = f", or set LIMELIGHT_MAX_CONNECTIONS to at most {most}" if most > 0 else ""
        raise StartError(
            f"LIMELIGHT_MAX_CONNECTIONS is {max_connections}, which takes {needed} open files, but "
            f"the system allows this process {hard}: raise that limit (ulimit -n, systemd's "
            f"LimitNOFILE, docker's --ulimit nofile){cure}"
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


def is_enough(limit: int, needed: int) -> bool:
    """Whether a limit of the system allows so many files."""
    return limit == resource.RLIM_INFINITY or limit >= needed
