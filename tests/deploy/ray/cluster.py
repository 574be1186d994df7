"""Limelight on Ray Serve: started, changed, and robbed of replicas."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final

import httpx
import yaml

from tests.integration.server_process import ROOT, make_environment

LAPTOP: Final = ROOT / "deploy" / "ray" / "laptop.yaml"
URL: Final = "http://127.0.0.1:8000"
START_TIMEOUT_S: Final = 120
STOP_TIMEOUT_S: Final = 30
PAUSE_S: Final = 0.05
TITLE: Final = b"ray::ServeReplica:limelight:"  # how Ray names the process of a replica
# All processes of a cluster end with the first one.
ALONE: Final = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
VARIABLES: Final = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_worker_niceness": "0",  # by itself it is 15, and all else goes first
    "RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH": "deploy.ray.proxy.make_layers",
    "PYTHONPATH": str(ROOT),
}


def read_laptop() -> dict[str, Any]:
    """The configuration for one machine."""
    config: dict[str, Any] = yaml.safe_load(LAPTOP.read_text())
    return config


def change_laptop(settings: Mapping[str, str]) -> dict[str, Any]:
    """The same for replicas with other settings, and a proxy on each node."""
    config = read_laptop()
    (deployment,) = config["applications"][0]["deployments"]
    deployment["ray_actor_options"]["runtime_env"]["env_vars"] |= settings
    return config | {"proxy_location": "EveryNode"}


@dataclass(frozen=True)
class Cluster:
    """A cluster that runs.

    Attributes:
        folder: for files.
        process: its first one.
        log_file: what it says.
    """

    folder: Path
    process: "subprocess.Popen[str]"
    log_file: Path
    deployed: list[str] = field(default_factory=list)

    def deploy(self, config: Mapping[str, Any]) -> None:
        """Serve by a configuration, from soon on."""
        path = self.folder / f"serve-{len(self.deployed)}.yaml"
        path.write_text(yaml.safe_dump(dict(config)))
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(f"{path}\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline().strip() == str(path), self.read_log()
        self.deployed.append(str(path))

    def read_log(self) -> str:
        """The last of what it said."""
        return self.log_file.read_text(errors="replace")[-8000:]

    def wait_until(self, condition: Callable[[], object], timeout_s: float) -> None:
        """Look again and again until something is so."""
        deadline_s = time.monotonic() + timeout_s
        while not condition():
            assert self.process.poll() is None, self.read_log()
            assert time.monotonic() < deadline_s, self.read_log()
            time.sleep(PAUSE_S)


@contextmanager
def start_cluster(nodes: int, folder: Path) -> Iterator[Cluster]:
    """A cluster in the network of this thread; nothing is served by it yet.

    Args:
        nodes: of one core each.
        folder: for files.
    """
    command = [*ALONE, sys.executable, "-m", "tests.deploy.ray.host", str(nodes)]
    # Below it are Unix sockets, whose paths have 107 bytes at most.
    with tempfile.TemporaryDirectory(prefix="ray-") as short:
        variables = VARIABLES | {"RAY_TMPDIR": short}
        with start(command, folder / "cluster.log", variables) as process:
            yield Cluster(folder, process, folder / "cluster.log")


@contextmanager
def start(
    command: list[str], log_file: Path, variables: Mapping[str, str]
) -> Iterator["subprocess.Popen[str]"]:
    """A process that is told by its input when to end; killed if it does not."""
    pipe = subprocess.PIPE
    with log_file.open("wb") as log:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=make_environment(variables),
            stdin=pipe,
            stdout=pipe,
            stderr=log,
            text=True,
        )
    try:
        yield process
    finally:
        end(process)


def end(process: "subprocess.Popen[str]") -> None:
    """Close the input of a process, and wait for its end."""
    streams: list[IO[str] | None] = [process.stdin, process.stdout]
    for stream in filter(None, streams):
        stream.close()
    try:
        process.wait(STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def is_ready() -> bool:
    """Whether the application answers that it is ready."""
    try:
        return httpx.get(f"{URL}/v2/health/ready", timeout=START_TIMEOUT_S).is_success
    except httpx.TransportError:
        return False


def find_replicas() -> set[int]:
    """The processes of all replicas."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if path.read_bytes().startswith(TITLE):
                found.add(int(path.parent.name))
        except OSError:  # it has ended
            continue
    return found


def read_ages() -> set[str]:
    """Since when the replica that answers now counts departures; of each, another time."""
    lines = httpx.get(f"{URL}/metrics", timeout=START_TIMEOUT_S).text.splitlines()
    return {line for line in lines if line.startswith("limelight_departures_created")}


def kill(pid: int) -> None:
    """Kill a process."""
    os.kill(pid, signal.SIGKILL)
