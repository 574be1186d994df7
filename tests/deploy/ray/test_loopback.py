"""On a laptop, which has an address on a network, everything of Ray and Serve is on loopback."""

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

import httpx
import pytest

from tests.deploy.ray.cluster import (
    ALONE,
    LAPTOP,
    PAUSE_S,
    START_TIMEOUT_S,
    URL,
    VARIABLES,
    find_replicas,
    is_ready,
)
from tests.deploy.ray.network import find_listeners, own_network
from tests.integration.server_process import ROOT, make_environment

pytestmark = pytest.mark.ray
COMMAND: Final = [*ALONE, sys.executable, "-m", "ray.serve.scripts", "run", str(LAPTOP)]
LEAST_LISTENERS: Final = 10  # so many has Ray, with two replicas


def test_every_port_is_on_loopback(tmp_path: Path) -> None:
    with own_network(host=True), tempfile.TemporaryDirectory(prefix="ray-") as short:
        keeping = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_TMPDIR": short}
        variables = make_environment(VARIABLES | keeping)
        with (tmp_path / "log").open("wb") as log:
            process = subprocess.Popen(COMMAND, cwd=ROOT, env=variables, stdout=log, stderr=log)
        try:
            wait_for_replicas(process, tmp_path / "log")
            listeners = find_listeners()
            assert [str(each) for each, _ in listeners if not each.is_loopback] == []
            assert len(listeners) > LEAST_LISTENERS
            refusal = httpx.get(f"{URL}/v2/models/nobody")
            assert refusal.status_code == 404
            assert refusal.headers.get_list("x-request-id") == [refusal.headers["x-request-id"]]
        finally:
            process.kill()
            process.wait()


def wait_for_replicas(process: "subprocess.Popen[bytes]", log_file: Path) -> None:
    """Wait until both replicas serve."""
    deadline_s = time.monotonic() + START_TIMEOUT_S
    while not (is_ready() and len(find_replicas()) == 2):
        assert process.poll() is None, log_file.read_text()
        assert time.monotonic() < deadline_s, log_file.read_text()
        time.sleep(PAUSE_S)
