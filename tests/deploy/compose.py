"""Docker Compose, which reads compose files without an engine."""

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[2]
TIMEOUT_S: Final = 60


@cache
def find_compose() -> tuple[str, ...] | None:
    """The command of Compose: docker's plugin, or the program that stands alone."""
    for command in (("docker", "compose"), ("docker-compose",)):
        if shutil.which(command[0]) and not run(command, "version").returncode:
            return command
    return None


def run(command: Sequence[str], *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run a command of Compose with nothing of this shell's own that the files would read."""
    names = ("PATH", "HOME")
    return subprocess.run(
        [*command, *arguments],
        cwd=ROOT,
        env={name: os.environ[name] for name in names if name in os.environ},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )


def run_config(*options: str) -> dict[str, Any]:
    """What Compose makes of its files with some options, in its JSON."""
    command = find_compose()
    assert command
    done = run(command, *options, "config", "--format", "json")
    assert done.returncode == 0, done.stderr
    read: dict[str, Any] = json.loads(done.stdout)
    return read


@cache
def resolve(files: tuple[str, ...], profiles: tuple[str, ...] = ()) -> dict[str, Any]:
    """What Compose makes of files that are laid over each other."""
    options = [part for file in files for part in ("-f", file)]
    options += [part for profile in profiles for part in ("--profile", profile)]
    return run_config(*options)
