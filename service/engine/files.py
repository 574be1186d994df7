"""Files read within bounds: what lies in a directory of models may be anything."""

import os
import stat
from io import BufferedReader
from pathlib import Path


def open_regular(path: Path) -> BufferedReader:
    """Open a file for reading; a pipe, which would wait for its writer for ever, is refused.

    Raises:
        OSError: if it is absent, cannot be read, or is no regular file.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError("it is no regular file")
    return os.fdopen(descriptor, "rb")


def read_bounded(path: Path, max_bytes: int) -> bytes:
    """The content of a file that is expected to be small.

    Raises:
        OSError: if it cannot be read, or is larger than `max_bytes`.
    """
    with open_regular(path) as stream:
        content = stream.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise OSError(f"it is larger than {max_bytes} bytes")
    return content


def explain(error: OSError) -> str:
    """What went wrong, without the path that the error's own text repeats."""
    return error.strerror or str(error)
