"""`limelight-serve` as a process: its first screen, how it refuses to start, and how it stops."""

import json
import os
import shlex
import shutil
import socket
import time
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import numpy as np
import pytest

from tests.integration.demo import TOLERANCE, D, check_close, draw_tokens, expect
from tests.integration.doors import INFER, read_v2_bytes, write_v2_binary
from tests.integration.server_process import (
    ROOT,
    ServerProcess,
    find_free_port,
    launch,
    run_command,
    run_line,
    start_server,
    wait_for_port,
)

pytestmark = pytest.mark.skipif(
    "LIMELIGHT_TEST_URL" in os.environ, reason="a deployed server is tested"
)
DEMO = ROOT / "service" / "demo" / "demo"
MANY = 200
TIMEOUT_S = 60
REFUSAL_TIMEOUT_S = 10


def refuse(*arguments: str, **settings: str) -> str:
    """The one line with which a start ends."""
    done = run_command(*arguments, timeout_s=REFUSAL_TIMEOUT_S, **settings)
    assert done.returncode == 1, done.stderr
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("limelight-serve: ")
    return line.removeprefix("limelight-serve: ")


def test_the_version_is_printed() -> None:
    done = run_command("--version")
    assert done.returncode == 0
    assert done.stdout.strip().count(".") == 2
    assert done.stderr == ""


def test_the_help_lists_the_settings() -> None:
    done = run_command("--help")
    assert done.returncode == 0
    for option in ("--models", "--port", "--host", "--provider", "--max-batch-size", "--demo"):
        assert option in done.stdout


def test_the_first_screen_names_all_that_one_needs() -> None:
    version = run_command("--version").stdout.strip()
    with start_server() as server:
        first, *lines = server.banner
        assert first == f"Limelight {version}"
        named = {line.split()[0]: line.split(maxsplit=1)[1] for line in lines}
        assert "demo" in named["model"]
        assert "cpu" in named["model"]
        assert f"d_model {D}" in named["model"]
        assert named["page"] == f"{server.url}/"
        assert named["docs"] == f"{server.url}/docs"
        assert named["try"].startswith("curl ")
        assert httpx.get(named["page"]).status_code == 200
        assert httpx.get(named["docs"]).status_code == 200


def test_the_line_to_try_works_as_it_stands() -> None:
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    with start_server() as server:
        line = server.banner[-1].split(maxsplit=1)[1]
        answer = json.loads(run_line(line))
    query = np.eye(2, D, dtype=np.float32)
    assert str(query.astype(int).tolist()) in shlex.split(line)[-1]
    right = expect({"query": query[None]})["output"][0]
    np.testing.assert_allclose(answer["output"], right, rtol=0, atol=TOLERANCE)


def test_a_misspelt_variable_is_refused() -> None:
    assert refuse(LIMELIGHT_MAX_BACH_SIZE="3") == (
        "LIMELIGHT_MAX_BACH_SIZE: no such setting; limelight-serve --help lists all"
    )


def test_variables_of_the_tests_are_not_the_servers() -> None:
    with start_server(LIMELIGHT_TEST_URL="http://nowhere"):
        pass


@pytest.mark.parametrize(
    ("name", "text"),
    [("PORT", "x"), ("PORT", "70000"), ("MAX_BATCH_SIZE", "0"), ("PROVIDER", "tpu"), ("HOST", "x")],
)
def test_a_setting_that_does_not_fit_is_refused(name: str, text: str) -> None:
    line = refuse(**{f"LIMELIGHT_{name}": text})
    assert line.startswith(f"LIMELIGHT_{name} is '{text}': ")


def test_a_port_in_use_is_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        line = refuse("--port", str(port))
    assert line.startswith(f"cannot listen on 127.0.0.1 port {port}: Address already in use")
    assert "LIMELIGHT_PORT" in line


def test_cuda_is_refused_where_there_is_none() -> None:
    if Path("/dev/nvidia0").exists():
        pytest.skip("this machine has a GPU")
    line = refuse(LIMELIGHT_PROVIDER="cuda", LIMELIGHT_PORT="0")
    assert "LIMELIGHT_PROVIDER is cuda" in line


def test_auto_computes_on_the_cpu_where_there_is_no_gpu() -> None:
    if Path("/dev/nvidia0").exists():
        pytest.skip("this machine has a GPU")
    with start_server(LIMELIGHT_PROVIDER="auto") as server:
        properties = httpx.get(f"{server.url}/v2/models/demo").json()["properties"]
        assert properties["provider"] == "cpu"
        assert "on cpu" in server.read_log()


def test_an_option_goes_before_its_variable() -> None:
    with start_server("--max-batch-size", "2", LIMELIGHT_MAX_BATCH_SIZE="3") as server:
        body, headers = write_v2_binary(draw_tokens(3))
        response = httpx.post(f"{server.url}{INFER}", content=body, headers=headers)
    text = "batch size is 3, expected at most 2 (LIMELIGHT_MAX_BATCH_SIZE)"
    assert (response.status_code, response.json()) == (400, {"error": text})


def make_many_models(folder: Path) -> None:
    """A repository that takes a while to load."""
    for number in range(MANY):
        shutil.copytree(DEMO / "1", folder / f"demo{number:03}" / "1")


def test_a_server_that_loads_is_live_but_not_ready(tmp_path: Path) -> None:
    make_many_models(tmp_path)
    port = find_free_port()
    url, settings = f"http://127.0.0.1:{port}", {"LIMELIGHT_PORT": str(port)}
    statuses = []

    def look() -> None:
        live = httpx.get(f"{url}/v2/health/live")
        assert (live.status_code, live.json()) == (200, {"live": True})
        ready = httpx.get(f"{url}/v2/health/ready")
        infer = httpx.post(f"{url}/v1/attention", content=b"{}")
        statuses.append((ready.status_code, infer.status_code))
        if ready.status_code == 503:
            assert ready.json()["error"] == "the server is not ready: starting"
            assert ready.headers["Retry-After"]

    with start_server(LIMELIGHT_MODELS=str(tmp_path), while_starting=look, **settings):
        assert statuses == [(503, 503)]
        assert httpx.get(f"{url}/v2/health/ready").status_code == 200
        assert len(httpx.get(f"{url}/v2/models").json()["models"]) == MANY


def refuses_connections(url: str) -> bool:
    """Whether nobody listens any more."""
    address = urlsplit(url)
    try:
        socket.create_connection((address.hostname, address.port), TIMEOUT_S).close()
    except ConnectionRefusedError:
        return True
    except ConnectionResetError:  # it was about to stop
        return False
    return False


def wait_until_refused(server: ServerProcess) -> None:
    """Knock until the server has stopped listening."""
    deadline = time.monotonic() + TIMEOUT_S
    while not refuses_connections(server.url):
        assert time.monotonic() < deadline, "the server still listens"


def test_a_request_in_flight_is_answered_when_the_server_is_told_to_stop() -> None:
    tensors = draw_tokens()
    body, headers = write_v2_binary(tensors, parameters={"binary_data_output": True})
    headers |= {"Content-Length": str(len(body)), "Expect": "100-continue", "Host": "x"}
    lines = [f"POST {INFER} HTTP/1.1", *(f"{name}: {text}" for name, text in headers.items())]
    with start_server() as server:
        address = urlsplit(server.url)
        with socket.create_connection((address.hostname, address.port), TIMEOUT_S) as connection:
            connection.sendall("\r\n".join([*lines, "", ""]).encode())
            assert connection.recv(100).startswith(b"HTTP/1.1 100 ")
            connection.sendall(body[:100])
            server.process.terminate()
            wait_until_refused(server)
            connection.sendall(body[100:])
            answer = b"".join(iter(lambda: connection.recv(65536), b""))
        check_close(read_v2_bytes(answer), expect(tensors))
        assert server.process.wait(TIMEOUT_S) == 0


def test_an_interrupt_from_the_keyboard_ends_the_process_cleanly() -> None:
    with start_server() as server:
        server.process.send_signal(2)
        assert server.process.wait(TIMEOUT_S) == 0


def test_a_signal_while_the_models_are_loaded_ends_the_process_cleanly(tmp_path: Path) -> None:
    make_many_models(tmp_path)
    port = find_free_port()
    arguments = ("--port", str(port), "--models", str(tmp_path))
    with launch(*arguments) as process:
        wait_for_port(process, port)
        assert httpx.get(f"http://127.0.0.1:{port}/v2/health/live").status_code == 200
        process.terminate()
        assert process.wait(TIMEOUT_S) == 0
