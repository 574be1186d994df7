"""Two replicas on two nodes of Ray: they answer as one server, and none of them is missed."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.clients.versions import write_version
from tests.deploy.ray.cluster import (
    START_TIMEOUT_S,
    URL,
    Cluster,
    change_laptop,
    find_replicas,
    is_ready,
    kill,
    read_ages,
    start_cluster,
)
from tests.deploy.ray.network import own_network
from tests.integration.load import under_load
from tests.integration.server_process import ROOT

pytestmark = pytest.mark.ray
OLD, NEW, NEXT = 1.0, 1.5, 0.5
CLIENTS: Final = 4
KILLS: Final = 2
CONNECTIONS: Final = 20  # one of two proxies takes all of so many once in 500,000 times
TESTS_TIMEOUT_S: Final = 500
LEAST_TESTS: Final = 500  # else they were left out
ASKED: Final = (
    *("v2_binary", "v2_json", "v2_outputs", "bit_for_bit", "bad_requests", "compression", "health"),
    *("attention_forms", "masks", "metadata", "model_configuration", "openapi", "weights"),
)


@pytest.fixture(scope="module", name="models")
def make_repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository that all replicas read."""
    models = tmp_path_factory.mktemp("shared")
    write_version(models / "demo" / "1", OLD)
    return models


@pytest.fixture(scope="module", name="cluster")
def serve_on_two_nodes(models: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster that serves, in a network of its own."""
    with own_network(host=True), start_cluster(2, tmp_path_factory.mktemp("ray")) as cluster:
        cluster.deploy(configure(models))
        cluster.wait_until(is_whole, START_TIMEOUT_S)
        yield cluster


def is_whole() -> bool:
    """Whether two replicas serve, and both proxies know them: on one machine these share a port."""
    return len(find_replicas()) == 2 and all(is_ready() for _ in range(CONNECTIONS))


def configure(models: Path) -> dict[str, object]:
    """What to serve: the models of a folder, as it changes."""
    return change_laptop(
        {
            "LIMELIGHT_MODELS": str(models),
            "LIMELIGHT_MODEL_CONTROL": "poll",
            "LIMELIGHT_MODEL_POLL_INTERVAL_S": "0.2",
        }
    )


def test_the_tests_of_the_protocol_pass_unchanged(cluster: Cluster) -> None:
    files = [f"tests/integration/test_{name}.py" for name in ASKED]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *files]
    environment = os.environ | {"LIMELIGHT_TEST_URL": URL}
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=TESTS_TIMEOUT_S,
    )
    assert done.returncode == 0, done.stdout[-4000:]
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed
    assert int(passed[1]) > LEAST_TESTS


def test_no_request_is_lost_with_a_replica_that_is_killed(cluster: Cluster) -> None:
    with under_load(URL, "demo", [OLD], clients=CLIENTS) as load:
        for _ in range(KILLS):
            load.wait_for_more()
            replace_one(cluster)


def replace_one(cluster: Cluster) -> None:
    """Kill a replica, and wait until the one in its place answers.

    How long that takes is the machine's: `docs/scale.md` has what was measured.
    """
    replicas, ages = find_replicas(), read_all_ages()
    assert len(replicas) == 2
    kill(min(replicas))
    cluster.wait_until(lambda: read_ages() - ages, START_TIMEOUT_S)


def test_no_request_fails_when_a_version_comes(cluster: Cluster, models: Path) -> None:
    with under_load(URL, "demo", [OLD, NEW], clients=CLIENTS) as load:
        load.wait_for(OLD)
        write_version(models / "demo" / "2", NEW)
        load.wait_for(NEW)


def test_no_request_fails_when_all_replicas_are_replaced(cluster: Cluster, tmp_path: Path) -> None:
    write_version(tmp_path / "demo" / "1", NEXT)
    before = find_replicas()
    with under_load(URL, "demo", [NEW, NEXT], clients=CLIENTS) as load:
        load.wait_for(NEW)
        cluster.deploy(configure(tmp_path))
        load.wait_for(NEXT)
        cluster.wait_until(lambda: not before & find_replicas(), START_TIMEOUT_S)


def read_all_ages() -> set[str]:
    """The ages of both replicas: either answers a request as well as not."""
    seen: set[str] = set()
    deadline_s = time.monotonic() + START_TIMEOUT_S
    while len({line.split()[0] for line in seen}) * 2 > len(seen) or not seen:
        assert time.monotonic() < deadline_s, "one replica answers alone"
        seen |= read_ages()
    return seen
