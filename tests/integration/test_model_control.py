"""Models that come and go while the server runs, and while clients ask."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.clients.versions import write_version
from tests.faults.process_facts import MIB, needs_linux, read_status
from tests.integration.load import under_load, wait_until
from tests.integration.server_process import ServerProcess, start_server

pytestmark = pytest.mark.skipif(
    "LIMELIGHT_TEST_URL" in os.environ, reason="a deployed server is tested"
)
OLD, NEW, OTHER = 1.0, 1.5, 0.5
CYCLES = int(os.environ.get("LIMELIGHT_TEST_CYCLES", "30"))
LEAST_CYCLES = 10  # before memory is compared: pools fill
COPY_SECONDS = 3.0
CHUNK_BYTES = 512
MOST_GROWTH_MIB = 20


@pytest.fixture(name="models")
def make_repository(tmp_path: Path) -> Path:
    """A repository of one model, `demo`, whose version 1 has the old weights."""
    write_version(tmp_path / "models" / "demo" / "1", OLD)
    return tmp_path / "models"


@contextmanager
def serve(models: Path, control: str, **settings: Any) -> Iterator[ServerProcess]:
    """A server with model control; polling looks at the directory all the time."""
    with start_server(
        LIMELIGHT_MODELS=str(models),
        LIMELIGHT_MODEL_CONTROL=control,
        LIMELIGHT_MODEL_POLL_INTERVAL_S="0.05",
        **settings,
    ) as server:
        yield server


def change(url: str, name: str, action: str) -> httpx.Response:
    """Load or unload a model."""
    return httpx.post(f"{url}/v2/repository/models/{name}/{action}", timeout=60)


def change_well(url: str, name: str, action: str) -> None:
    """Load or unload a model, which must succeed."""
    response = change(url, name, action)
    assert (response.status_code, response.text) == (200, "{}")


def read_index(url: str) -> list[tuple[str, ...]]:
    """Name, version, state and reason of every version."""
    entries: list[dict[str, str]] = httpx.post(f"{url}/v2/repository/index").json()
    return [(e["name"], e["version"], e["state"], e["reason"]) for e in entries]


def count_series(url: str) -> int:
    """Lines of the metrics."""
    return len(httpx.get(f"{url}/metrics").text.splitlines())


def test_without_control_nothing_comes_or_goes(models: Path) -> None:
    with serve(models, "none") as server:
        for action in ("load", "unload"):
            response = change(server.url, "demo", action)
            assert response.status_code == 501
            assert "LIMELIGHT_MODEL_CONTROL is none" in response.json()["error"]
        assert read_index(server.url) == [("demo", "1", "READY", "")]


@pytest.mark.parametrize("control", ["explicit", "poll"])
def test_with_control_a_server_is_ready_without_a_model(tmp_path: Path, control: str) -> None:
    with serve(tmp_path / "later", control) as server:
        assert "none yet" in server.banner[1]
        assert httpx.get(f"{server.url}/v2/health/ready").status_code == 200
        assert httpx.get(f"{server.url}/openapi.json").status_code == 200
        assert read_index(server.url) == []
        write_version(tmp_path / "later" / "demo" / "7", NEW)
        if control == "explicit":
            change_well(server.url, "demo", "load")
        wait_until(lambda: read_index(server.url) == [("demo", "7", "READY", "")])
        with under_load(server.url, "demo", [NEW]) as load:
            load.wait_for(NEW)


def test_models_of_the_start_are_those_of_the_setting(models: Path) -> None:
    shutil.copytree(models / "demo", models / "spare")
    with serve(models, "explicit", LIMELIGHT_LOAD_MODELS="spare") as server:
        assert httpx.get(f"{server.url}/v2/models").json() == {"models": ["spare"]}
        assert read_index(server.url) == [
            ("demo", "1", "UNAVAILABLE", "not loaded"),
            ("spare", "1", "READY", ""),
        ]


@needs_linux
def test_models_come_and_go_again_and_again_without_a_trace(models: Path) -> None:
    """In each cycle a neighbour goes and comes, and the model itself is loaded again."""
    write_version(models / "spare" / "3", OTHER)
    with (
        serve(models, "explicit", LIMELIGHT_LOG_LEVEL="warning") as server,
        under_load(server.url, "demo", [OLD]) as load,
    ):
        url, pid = server.url, server.process.pid
        load.wait_for(OLD)
        before_kib, series = 0, 0
        for cycle in range(CYCLES):
            for name, action in (("spare", "unload"), ("spare", "load"), ("demo", "load")):
                change_well(url, name, action)
            if cycle == LEAST_CYCLES:
                before_kib, series = read_status(pid, "VmRSS"), count_series(url)
        growth_kib = read_status(pid, "VmRSS") - before_kib
        assert growth_kib * 1024 < MOST_GROWTH_MIB * MIB
        assert count_series(url) == series


def test_names_that_are_unknown_leave_no_series(models: Path) -> None:
    with serve(models, "explicit") as server, httpx.Client(base_url=server.url) as client:
        client.post("/v2/models/unknown/infer", json={"inputs": []})
        client.post("/v2/repository/models/unknown/load")
        before = count_series(server.url)
        for number in range(200):
            assert client.post(f"/v2/models/n{number}/infer", json={}).status_code == 404
            assert client.post(f"/v2/repository/models/n{number}/load").status_code == 404
        assert count_series(server.url) == before


def copy_slowly(source: Path, target: Path) -> None:
    """Copy files in pieces, as a slow network does, each under its own name from the start."""
    files = sorted(source.iterdir())
    pieces = sum(1 + path.stat().st_size // CHUNK_BYTES for path in files)
    target.mkdir(parents=True, exist_ok=True)
    for path in files:
        with path.open("rb") as reader, (target / path.name).open("wb") as writer:
            while chunk := reader.read(CHUNK_BYTES):
                writer.write(chunk)
                writer.flush()
                time.sleep(COPY_SECONDS / pieces)


@pytest.mark.parametrize("version", ["1", "2"], ids=["overwritten in place", "a new version"])
def test_a_version_that_is_copied_slowly_serves_once_it_is_whole(
    models: Path, tmp_path: Path, version: str
) -> None:
    """Files are truncated and grow under the eyes of the server: never half a model."""
    write_version(tmp_path / "whole", NEW)
    with serve(models, "poll") as server, under_load(server.url, "demo", [OLD, NEW]) as load:
        load.wait_for(OLD)
        copy_slowly(tmp_path / "whole", models / "demo" / version)
        load.wait_for(NEW)
        wait_until(lambda: ("demo", version, "READY", "") in read_index(server.url))
        load.factors.clear()
        load.wait_for(NEW)
        assert load.factors[OLD] == 0


def test_a_link_is_turned_while_clients_ask(tmp_path: Path) -> None:
    """As Kubernetes does it: ``..data`` is replaced by a rename, and what it led to is removed."""
    models = tmp_path / "models"
    write_version(models / "..1" / "demo" / "1", OLD)
    (models / "..data").symlink_to("..1")
    (models / "demo").symlink_to("..data/demo")
    (tmp_path / "mounted").symlink_to("models")
    factors = [OLD, NEW, OTHER]
    with (
        serve(tmp_path / "mounted", "poll") as server,
        under_load(server.url, "demo", factors) as load,
    ):
        load.wait_for(OLD)
        for turn, factor in enumerate([NEW, OTHER, OLD, NEW, OTHER], 2):
            # A version of its own in every second turn.
            write_version(models / f"..{turn}" / "demo" / str(1 + turn % 2), factor)
            (models / "..new").symlink_to(f"..{turn}")
            (models / "..new").rename(models / "..data")
            shutil.rmtree(models / f"..{turn - 1}")
            load.factors.clear()
            load.wait_for(factor)
        wait_until(lambda: read_index(server.url) == [("demo", "1", "READY", "")])


def test_a_broken_version_beside_a_good_one_does_no_harm(models: Path) -> None:
    with serve(models, "poll") as server, under_load(server.url, "demo", [OLD, NEW]) as load:
        load.wait_for(OLD)
        write_version(models / "demo" / "2", NEW)
        weights = models / "demo" / "2" / "weights.bin"
        wait_until(lambda: ("demo", "2", "READY", "") in read_index(server.url))
        os.truncate(weights, 100)
        reason = "weights.bin differs from its entry in manifest.json"
        wait_until(lambda: ("demo", "2", "READY", reason) in read_index(server.url))
        load.factors.clear()
        load.wait_for(NEW)
        shutil.rmtree(models / "demo" / "2")
        wait_until(lambda: read_index(server.url) == [("demo", "1", "READY", "")])
        load.factors.clear()
        load.wait_for(OLD)


def test_requests_in_flight_are_answered_by_what_they_began_with(models: Path) -> None:
    """The body of a request comes while its model is unloaded and its files are removed."""
    query = {"name": "query", "shape": [1, 2, 6], "datatype": "FP32", "data": [0.5] * 12}
    body = httpx.Request("POST", "http://x", json={"inputs": [query]}).read()
    with serve(models, "explicit") as server:

        def send() -> Iterator[bytes]:
            yield body[:10]
            time.sleep(0.2)  # the server has the head by now, and with it the model
            change_well(server.url, "demo", "unload")
            shutil.rmtree(models / "demo")
            yield body[10:]

        response = httpx.post(f"{server.url}/v2/models/demo/infer", content=send())
        assert response.status_code == 200
        assert len(response.json()["outputs"]) == 2
        assert httpx.get(f"{server.url}/v2/models/demo").status_code == 404


CONTAINER = """
set -e
mount -t tmpfs none {root}
mkdir -p {root}/models
cp -r {models}/. {root}/models
exec {python} -c "import os, sys; os.chroot('{root}'); print('up', flush=True); sys.stdin.read()"
"""


@contextmanager
def contained(models: Path, root: Path) -> Iterator[Path]:
    """Models in the files of another container, as KServe's modelcar lets them be seen: by a link.

    The real path of what it leads to is not there for this process.
    """
    unshare = shutil.which("unshare")
    if unshare is None:
        pytest.skip("unshare is not installed")
    root.mkdir()
    script = CONTAINER.format(root=root, models=models, python=sys.executable)
    with subprocess.Popen(
        [unshare, "--map-root-user", "--mount", "sh", "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert process.stdout
        if process.stdout.readline() != b"up\n":
            pytest.skip("namespaces cannot be made here")
        yield Path(f"/proc/{process.pid}/root/models")
        process.kill()


@needs_linux
@pytest.mark.parametrize("control", ["none", "explicit", "poll"])
def test_models_in_another_container_are_served_through_a_link(
    models: Path, tmp_path: Path, control: str
) -> None:
    with contained(models, tmp_path / "container") as there:
        (tmp_path / "mounted").symlink_to(there)
        assert not Path(os.path.realpath(tmp_path / "mounted")).exists()
        with (
            serve(tmp_path / "mounted", control) as server,
            under_load(server.url, "demo", [OLD]) as load,
        ):
            load.wait_for(OLD)


def list_labels(client: Any, name: str) -> list[str]:
    """Lines of the metrics that name a model."""
    return [line for line in client.get("/metrics").text.splitlines() if f'"{name}"' in line]


def test_a_model_that_is_unloaded_leaves_the_metrics(models: Path) -> None:
    with serve(models, "explicit") as server, httpx.Client(base_url=server.url) as client:
        with under_load(server.url, "demo", [OLD]) as load:
            load.wait_for(OLD)
        assert list_labels(client, "demo")
        change_well(server.url, "demo", "unload")
        assert list_labels(client, "demo") == []
