"""A directory beside the models, where a version is written before it gets its name."""

import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

VERSION: Final = ".version"  # which is no name of a model
# As tempfile.mkdtemp makes it from the prefix below; servers skip names that begin with a dot.
PATTERN: Final = re.compile(r"\.(?P<name>[A-Za-z0-9_][A-Za-z0-9_.-]*)\.[a-z0-9_]{8}")


@contextmanager
def made_aside(models: Path, name: str) -> Iterator[Path]:
    """An empty directory for the time of the block, locked as long as this process lives.

    What exports that were killed have left is removed first: their locks went with them.

    Args:
        models: the repository; the rename from here to there stays within one file system.
        name: of the model.
    """
    for path in models.iterdir():
        remove_abandoned(path)
    aside, lock = make_locked(models, name)
    try:
        yield aside
    finally:
        shutil.rmtree(aside, ignore_errors=True)
        os.close(lock)


def make_locked(models: Path, name: str) -> tuple[Path, int]:
    """A new directory, and the descriptor that holds its lock."""
    while True:
        aside = Path(tempfile.mkdtemp(prefix=f".{name}.", dir=models))
        # Until it is locked another export may take it for an abandoned one, and remove it.
        with suppress(FileNotFoundError):
            lock = os.open(aside, os.O_RDONLY)
            with suppress(OSError):  # without locks on this file system, nothing is removed either
                fcntl.flock(lock, fcntl.LOCK_EX)
            if aside.exists():
                return aside, lock
            os.close(lock)


def remove_abandoned(path: Path) -> None:
    """Remove what an export has left that was killed; leave all else alone."""
    match = PATTERN.fullmatch(path.name)
    if match is None:
        return
    # Gone meanwhile, or locked by its export, or of another user, or no directory.
    with suppress(OSError):
        lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if {each.name for each in path.iterdir()} <= {VERSION, match["name"]}:
                shutil.rmtree(path, ignore_errors=True)
        finally:
            os.close(lock)
