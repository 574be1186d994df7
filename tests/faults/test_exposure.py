"""Faults of starting open: a server that everyone reaches because nobody said otherwise.

Ray CVE-2023-48022; TorchServe CVE-2024-35199.
"""

import os
import socket
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import httpx
import pytest

from tests.integration.server_process import ServerProcess, run_command, start_server

pytestmark = pytest.mark.skipif(
    "LIMELIGHT_TEST_URL" in os.environ, reason="a deployed server is tested"
)
TIMEOUT_S: Final = 30


def read_models(server: ServerProcess, key: str = "") -> int:
    """The status of a request that needs a key where keys are set."""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    return httpx.get(f"{server.url}/v2/models", headers=headers).status_code


@pytest.fixture
def made(tmp_path: Path) -> tuple[Path, str]:
    """A file of one key, and that key, as the command makes them."""
    ended = run_command("hash-key", "--new")
    assert ended.returncode == 0
    file = tmp_path / "keys"
    file.write_text(ended.stdout)
    return file, ended.stderr.strip().rpartition(" ")[2]


def test_a_key_that_was_made_by_the_command_fits(made: tuple[Path, str]) -> None:
    file, key = made
    with start_server(LIMELIGHT_API_KEYS_FILE=str(file)) as server:
        assert read_models(server, key) == 200
        assert read_models(server) == 401


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "LIMELIGHT_API_KEYS_FILE cannot be read: No such file or directory; "),
        ("", "LIMELIGHT_API_KEYS_FILE holds no key; "),
        ("secret-key-of-mine", "LIMELIGHT_API_KEYS_FILE, line 1: expected role:hash"),
    ],
)
def test_a_file_that_is_none_ends_the_start_in_one_line(
    tmp_path: Path, text: str | None, said: str
) -> None:
    file = tmp_path / "keys"
    if text is not None:
        file.write_text(text)
    ended = run_command(LIMELIGHT_API_KEYS_FILE=str(file), LIMELIGHT_PORT="0")
    assert ended.returncode == 1
    (line,) = ended.stderr.splitlines()
    assert line.startswith(f"limelight-serve: {said}")
    assert "secret" not in line


ANYWHERE: Final = "0.0.0.0"  # noqa: S104 - a setting of the server


def test_nobody_listens_where_others_are_without_keys_unless_that_is_wanted(
    made: tuple[Path, str],
) -> None:
    ended = run_command(LIMELIGHT_HOST=ANYWHERE, LIMELIGHT_PORT="0")
    assert ended.returncode == 1
    (line,) = ended.stderr.splitlines()
    assert line.startswith("limelight-serve: everyone who reaches 0.0.0.0 could use this server")
    assert "--allow-anonymous" in line
    with start_server("--allow-anonymous", LIMELIGHT_HOST=ANYWHERE) as server:
        assert read_models(server) == 200
        assert "no keys are set: everyone who reaches 0.0.0.0" in server.read_log()
    settings: dict[str, Any] = {"LIMELIGHT_API_KEYS_FILE": str(made[0])}
    with start_server(LIMELIGHT_HOST=ANYWHERE, **settings) as server:
        assert read_models(server) == 401
        assert read_models(server, made[1]) == 200


def test_by_default_other_machines_reach_nobody() -> None:
    """The whole of 127/8 is ours, and the server takes one address of it."""
    with start_server() as server:
        port = urlsplit(server.url).port
        assert server.url == f"http://127.0.0.1:{port}"
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.2", port or 0), TIMEOUT_S)
