"""A server of several workers: to its clients, and to who runs it, it is one."""

import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from tests.integration.demo import check_close, draw_tokens, expect
from tests.integration.doors import DOORS, read_answer
from tests.integration.server_process import (
    ROOT,
    ServerProcess,
    find_free_port,
    start_server,
)

pytestmark = pytest.mark.skipif(
    "LIMELIGHT_TEST_URL" in os.environ, reason="a deployed server has settings of its own"
)
DEMO: Final = ROOT / "service" / "demo" / "demo"
WORKERS: Final = 2
PATIENCE_S: Final = 60
PAUSE_S: Final = 0.02
SUCCESS: Final = 'nv_inference_request_success{model="demo",version="1"}'


@pytest.fixture(name="metrics_port", scope="module")
def choose_metrics_port() -> int:
    return find_free_port()


@pytest.fixture(name="root", scope="module")
def make_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository of the demo."""
    root = tmp_path_factory.mktemp("models")
    shutil.copytree(DEMO, root / "demo")
    return root


@pytest.fixture(name="server", scope="module")
def start(metrics_port: int, root: Path) -> Iterator[ServerProcess]:
    """Two workers that follow a directory of models."""
    with start_server(
        LIMELIGHT_WORKERS=str(WORKERS),
        LIMELIGHT_METRICS_PORT=str(metrics_port),
        LIMELIGHT_MODELS=str(root),
        LIMELIGHT_MODEL_CONTROL="poll",
        LIMELIGHT_MODEL_POLL_INTERVAL_S="0.1",
    ) as server:
        yield server


@pytest.fixture(name="clients", scope="module")
def connect(server: ServerProcess) -> Iterator[list[httpx.Client]]:
    """Connections to both workers: as many come to one as to the other."""
    clients = [httpx.Client(base_url=server.url, timeout=PATIENCE_S) for _ in range(4 * WORKERS)]
    for client in clients:
        client.get("/v2/health/live")
    yield clients
    for client in clients:
        client.close()


def wait_until(is_so: Callable[[], bool]) -> None:
    """Look again and again."""
    deadline_s = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline_s, "it took too long"
        time.sleep(PAUSE_S)


def read_metric(url: str, series: str) -> float:
    """The value of a series."""
    (line,) = [
        line for line in httpx.get(f"{url}/metrics").text.splitlines() if line.startswith(series)
    ]
    return float(line.rpartition(" ")[2])


def read_stats(client: httpx.Client, path: str = "/v2/models/demo/stats") -> dict[str, Any]:
    """What is counted of the demo."""
    (stats,) = client.get(path).json()["model_stats"]
    return dict(stats)


def test_there_is_one_first_screen_which_says_how_many_workers_there_are(
    server: ServerProcess,
) -> None:
    assert server.banner[0].startswith("Limelight ")
    assert server.banner.count(server.banner[0]) == 1
    assert f"  workers   {WORKERS}" in server.banner
    assert any(line.startswith("  model     demo version 1: ") for line in server.banner)


def test_all_are_ready_when_it_is_shown(server: ServerProcess, metrics_port: int) -> None:
    for url in (server.url, f"http://127.0.0.1:{metrics_port}"):
        assert read_metric(url, "limelight_workers") == WORKERS


@pytest.mark.parametrize("door", DOORS)
def test_every_worker_answers_right(clients: list[httpx.Client], door: str) -> None:
    for rows, client in enumerate(clients, 1):
        tensors = draw_tokens(rows)
        answer = read_answer(DOORS[door](client, tensors))
        check_close({"output": answer["output"]}, {"output": expect(tensors)["output"]})


def test_every_worker_says_what_all_have_counted(
    server: ServerProcess, clients: list[httpx.Client], metrics_port: int
) -> None:
    before = read_metric(server.url, SUCCESS)
    for number, client in enumerate(clients, 1):
        for _ in range(number):
            assert DOORS["v2-json"](client, draw_tokens()).status_code == 200
    asked = before + sum(range(1, len(clients) + 1))
    for client in clients:
        for path in (
            "/v2/models/demo/stats",
            "/v2/models/stats",
            "/v2/models/demo/versions/1/stats",
        ):
            assert read_stats(client, path)["inference_stats"]["success"]["count"] == asked
    for url in (server.url, f"http://127.0.0.1:{metrics_port}"):
        assert read_metric(url, SUCCESS) == asked
        label = '{model="demo",outcome="ok",version="1"}'
        assert read_metric(url, f"limelight_requests_total{label}") == asked
        label = '{model="demo",version="1"}'
        assert read_metric(url, f"limelight_total_seconds_count{label}") == asked


@pytest.mark.parametrize("change", ["load", "unload"])
def test_no_worker_loads_or_unloads_on_request(clients: list[httpx.Client], change: str) -> None:
    for client in clients:
        answer = client.post(f"/v2/repository/models/demo/{change}")
        assert answer.status_code == 501
        assert answer.json() == {
            "error": "models cannot be loaded or unloaded on request: LIMELIGHT_WORKERS is 2, and "
            "a request reaches one worker alone; set LIMELIGHT_MODEL_CONTROL to poll, so that each "
            "follows the directory of models, or start the server with one worker"
        }


def test_every_worker_follows_the_directory_of_models(
    clients: list[httpx.Client], root: Path, tmp_path: Path
) -> None:
    shutil.copytree(DEMO / "1", tmp_path / "1")
    (root / "later").mkdir()
    (tmp_path / "1").rename(root / "later" / "1")

    def is_served() -> bool:
        return all(client.get("/v2/models/later").status_code == 200 for client in clients)

    wait_until(is_served)
    for client in clients:
        assert DOORS["v2-json"](client, draw_tokens()).status_code == 200
    shutil.rmtree(root / "later")
    wait_until(lambda: not any(c.get("/v2/models/later").status_code == 200 for c in clients))


def test_every_line_of_the_log_is_an_object(
    server: ServerProcess, clients: list[httpx.Client]
) -> None:
    for client in clients:
        client.get("/v2")
    for line in server.log_file.read_text().splitlines():
        assert line.startswith('{"time":"')
        assert line.endswith("}")
