"""What the image holds and what the container may do."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.container.engine import Container

ROOT = Path(__file__).parents[2]
HEALTHCHECK = ("python", "-I", "-S", "/opt/limelight/healthcheck.py")

pytestmark = pytest.mark.container


def test_a_container_answers_json_binary_and_weights_right(container: Container) -> None:
    command = [sys.executable, "deploy/smoke.py", container.url]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_health_check_of_the_image_says_healthy(container: Container) -> None:
    assert container.inspect("{{.State.Health.Status}}") == "healthy"


def test_the_health_check_fails_where_no_server_listens(container: Container) -> None:
    assert container.run(*HEALTHCHECK).returncode == 0
    assert container.run(*HEALTHCHECK, LIMELIGHT_PORT="9").returncode == 1


@pytest.mark.parametrize("package", ["torch", "onnx", "onnxscript", "pip", "setuptools", "pytest"])
def test_the_image_holds_no_package_that_serving_does_not_need(
    container: Container, package: str
) -> None:
    look = "import importlib.util, sys; sys.exit(importlib.util.find_spec(sys.argv[1]) is not None)"
    assert container.run("python", "-c", look, package).returncode == 0


def test_the_image_holds_bytecode_which_a_read_only_root_could_not_keep(
    container: Container,
) -> None:
    look = "import os, service.app as app; os.stat(app.__spec__.cached)"
    assert container.run("python", "-c", look).returncode == 0


def test_the_server_runs_as_an_account_without_rights(container: Container) -> None:
    status = container.run("cat", "/proc/self/status").stdout
    facts = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert facts["Uid"].split() == ["10001"] * 4
    assert int(facts["CapEff"], 16) == 0
    assert facts["NoNewPrivs"] == "1"


@pytest.mark.parametrize("path", ["/models/file", "/opt/limelight/file", "/file"])
def test_the_server_cannot_write_outside_tmp(container: Container, path: str) -> None:
    assert container.run("python", "-c", f"open({path!r}, 'w')").returncode == 1
    assert container.run("python", "-c", "open('/tmp/file', 'w')").returncode == 0


def test_onnxruntime_reports_to_nobody(container: Container) -> None:
    assert container.run("printenv", "ORT_DISABLE_TELEMETRY").stdout == "1\n"
