"""The Docker engine of this machine, and a server that runs in one of its containers."""

import os
import shutil
import socket
import subprocess
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest

ROOT = Path(__file__).parents[2]
BUILD_TIMEOUT_S = 900


def docker(*arguments: str, port: int | None = None) -> "subprocess.CompletedProcess[str]":
    """Run the docker command; `port` is the one that the compose file publishes."""
    command = shutil.which("docker")
    if command is None:
        pytest.skip("docker is not installed")
    environment = os.environ | ({} if port is None else {"PORT": str(port)})
    return subprocess.run(
        [command, *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=BUILD_TIMEOUT_S,
    )


@dataclass(frozen=True, slots=True)
class Container:
    """A running container of the server, and the address it is published at."""

    name: str
    url: str

    def run(self, *command: str, **variables: str) -> "subprocess.CompletedProcess[str]":
        """Run a command inside, with `variables` in its environment."""
        options = [part for k, v in variables.items() for part in ("--env", f"{k}={v}")]
        return docker("exec", *options, self.name, *command)

    def inspect(self, template: str) -> str:
        """What the engine knows of the container, through a Go template."""
        return docker("inspect", "--format", template, self.name).stdout.strip()


def container_at(url: str) -> Container:
    """The container that publishes the port of `url`."""
    found = docker("ps", "--quiet", "--filter", f"publish={urlsplit(url).port}").stdout.split()
    if not found:
        pytest.skip(f"{url} is not a container of this engine")
    return Container(found[0], url)


def free_port() -> int:
    """A port that nothing listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port
