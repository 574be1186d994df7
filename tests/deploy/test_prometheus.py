"""Prometheus itself with our configuration, beside a server that has work."""

import json
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
import yaml

from tests.deploy.compose import ROOT
from tests.deploy.dashboard import ALERTS, FOLDER, QUERIES, Query
from tests.deploy.programs import run_until_it_answers
from tests.integration.server_process import find_free_port, start_server

pytestmark = pytest.mark.prometheus

KEY: Final = "prometheus-may-read-the-metrics"
SCRAPE_INTERVAL: Final = "200ms"
RATE_INTERVAL: Final = "5s"
TIMEOUT_S: Final = 60
WAIT_S: Final = 0.2


def ask_promtool(*arguments: str) -> None:
    """Run promtool, which must find no fault."""
    command = ["promtool", *arguments]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_promtool_finds_no_fault_in_the_configuration(tmp_path: Path) -> None:
    ask_promtool("check", "rules", str(FOLDER / "alerts.yml"))
    ask_promtool("check", "config", "--syntax-only", str(FOLDER / "prometheus.yml"))
    ask_promtool("check", "config", str(write_configuration(tmp_path, "http://localhost:8000")))


def test_each_alert_fires_on_its_symptom_and_on_no_other() -> None:
    file = Path(__file__).with_name("alerts_test.yml")
    ask_promtool("test", "rules", str(file))
    assert all(rule["alert"] in file.read_text() for rule in ALERTS)


def write_configuration(folder: Path, server_url: str) -> Path:
    """Our configuration for a server elsewhere, read more often, with its rules beside it."""
    configuration = yaml.safe_load((FOLDER / "prometheus.yml").read_text())
    configuration["global"] = dict.fromkeys(configuration["global"], SCRAPE_INTERVAL)
    ours = configuration["scrape_configs"][0]
    assert ours["static_configs"] == [{"targets": ["limelight:8000"]}]
    ours["static_configs"] = [{"targets": [server_url.removeprefix("http://")]}]
    key_file = folder / "key"
    key_file.write_text(KEY)
    ours["authorization"]["credentials_file"] = str(key_file)
    (folder / "alerts.yml").write_text((FOLDER / "alerts.yml").read_text())
    file = folder / "prometheus.yml"
    file.write_text(yaml.safe_dump(configuration))
    return file


@pytest.fixture(scope="module", name="server")
def start_server_with_a_key() -> Iterator[str]:
    """The address of a server that wants a key of whoever reads its metrics."""
    from service.http.keys import hash_key

    with tempfile.NamedTemporaryFile("w", suffix=".keys") as keys:
        keys.write(f"infer:{hash_key(KEY.encode()).hex()}\n")
        keys.flush()
        with start_server(LIMELIGHT_API_KEYS_FILE=keys.name) as server:
            yield server.url


@pytest.fixture(scope="module", name="traffic", autouse=True)
def ask_without_a_pause(server: str) -> Iterator[None]:
    """Requests of all outcomes while the tests of this file run."""
    over = threading.Event()
    headers = {"Authorization": f"Bearer {KEY}"}

    def ask() -> None:
        with httpx.Client(base_url=server, headers=headers, timeout=TIMEOUT_S) as client:
            while not over.wait(0.02):
                for width, status in ((6, 200), (7, 400)):
                    answer = client.post("/v1/attention", json={"query": [[0.5] * width] * 2})
                    assert answer.status_code == status

    thread = threading.Thread(target=ask)
    thread.start()
    yield
    over.set()
    thread.join()


@pytest.fixture(scope="module", name="prometheus")
def start_prometheus(
    server: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[httpx.Client]:
    """A client of a Prometheus that reads the server."""
    folder = tmp_path_factory.mktemp("prometheus")
    address = f"127.0.0.1:{find_free_port()}"
    command = [
        "prometheus",
        f"--config.file={write_configuration(folder, server)}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address={address}",
    ]
    with (
        run_until_it_answers(command, f"http://{address}/-/ready", folder / "log"),
        httpx.Client(base_url=f"http://{address}", timeout=TIMEOUT_S) as client,
    ):
        yield client


def query(prometheus: httpx.Client, expr: str) -> list[dict[str, Any]]:
    """The series that an expression has now."""
    answer = prometheus.get("/api/v1/query", params={"query": expr})
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["data"]["result"]
    return found


def wait_for(prometheus: httpx.Client, expr: str) -> list[dict[str, Any]]:
    """The series of an expression as soon as each has a number; rates need a few readings."""
    deadline_s = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline_s:
        found = query(prometheus, expr)
        if found and all(each["value"][1] != "NaN" for each in found):
            return found
        time.sleep(WAIT_S)
    raise AssertionError(f"no data after {TIMEOUT_S} s: {expr}; the last was {json.dumps(found)}")


@pytest.mark.parametrize(
    "panel",
    [each for each in QUERIES if not each.needs_gpu],
    ids=lambda each: f"{each.panel}: {each.expr}",
)
def test_every_query_of_the_dashboard_returns_data(prometheus: httpx.Client, panel: Query) -> None:
    assert wait_for(prometheus, panel.fill(RATE_INTERVAL))


def test_queries_for_a_gpu_are_understood_and_empty_without_one(prometheus: httpx.Client) -> None:
    found = [query(prometheus, each.fill(RATE_INTERVAL)) for each in QUERIES if each.needs_gpu]
    assert found == [[], []]


def test_the_variable_of_the_dashboard_lists_the_models(prometheus: httpx.Client) -> None:
    wait_for(prometheus, "limelight_model_info")
    answer = prometheus.get(
        "/api/v1/label/model/values", params={"match[]": "limelight_model_info"}
    )
    assert answer.json()["data"] == ["demo"]


def test_every_alert_is_loaded_and_none_fires_at_a_server_that_is_well(
    prometheus: httpx.Client,
) -> None:
    wait_for(prometheus, "limelight_requests_total")
    (group,) = prometheus.get("/api/v1/rules").json()["data"]["groups"]
    rules = group["rules"]
    assert [rule["name"] for rule in rules] == [rule["alert"] for rule in ALERTS]
    assert {(rule["health"], rule["state"]) for rule in rules} <= {
        ("ok", "inactive"),
        ("unknown", "inactive"),  # not looked at yet
    }
