"""A server in a container: the one behind LIMELIGHT_TEST_URL, else one that compose builds."""

import os
from collections.abc import Iterator

import pytest

from tests.container.engine import Container, container_at, docker, free_port

COMPOSE = ("compose", "-f", "docker-compose.cpu.yml", "-p", "limelight-test")


@pytest.fixture(scope="session")
def container() -> Iterator[Container]:
    """A healthy server without a GPU."""
    if url := os.environ.get("LIMELIGHT_TEST_URL"):
        yield container_at(url)
        return
    if docker("compose", "version").returncode:
        pytest.skip("Docker Compose is not installed")
    port = free_port()
    started = docker(*COMPOSE, "up", "--build", "--detach", "--wait", port=port)
    try:
        assert started.returncode == 0, started.stderr[-4000:]
        yield container_at(f"http://127.0.0.1:{port}")
    finally:
        docker(*COMPOSE, "down", "--remove-orphans", port=port)
