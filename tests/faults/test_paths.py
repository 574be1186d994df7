"""Faults of names: one that is read as a path leads out of the directory of models or of the page.

Triton CVE-2023-31036, CVE-2024-0087, CVE-2024-0100, CVE-2026-24147, -24208, -47487, -47606.
"""

import itertools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlsplit

import pytest

from service.engine.directories import DEMO
from tests.integration.server_process import ServerProcess, start_server

pytestmark = pytest.mark.skipif(
    "LIMELIGHT_TEST_URL" in os.environ, reason="a deployed server is tested"
)
WATCHED: Final = Path(__file__).parent / "watched"
TIMEOUT_S: Final = 30
BAIT: Final = "bait-of-the-tests"
SECRET: Final = b"secret-of-the-tests"
UPS: Final = ("..", "%2e%2e", ".%2E", "%252e%252e", "..%00", "%c0%ae%c0%ae", "%ef%bc%8e%ef%bc%8e")
SLASHES: Final = ("/", "%2f", "%252f", "\\", "%5c", "//", "/./")
DEPTHS: Final = (1, 2, 5)
ENDS: Final = ("", "%00", "%00.js", "/1")
PLACES: Final = (
    ("GET", "/v2/models/{}"),
    ("GET", "/v2/models/{}/config"),
    ("GET", "/v2/models/demo/versions/{}"),
    ("POST", "/v2/models/{}/infer"),
    ("POST", "/v2/models/demo/versions/{}/infer"),
    ("POST", "/v2/repository/models/{}/load"),
    ("POST", "/v2/repository/models/{}/unload"),
    ("POST", "/v1/attention?model={}"),
    ("POST", "/v1/attention?model=demo&version={}"),
    ("GET", "/page/{}"),
    ("GET", "/docs/assets/{}"),
    ("GET", "/v2/systemsharedmemory/region/{}/status"),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory of models, and beside it a model and a text that are not for clients."""
    folder = tmp_path_factory.mktemp("paths")
    shutil.copytree(DEMO / "demo", folder / "models" / "demo")
    shutil.copytree(DEMO / "demo", folder / BAIT)
    (folder / BAIT / "secret.txt").write_bytes(SECRET)
    return folder


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[ServerProcess]:
    """A server that loads what it is asked to, and is watched."""
    settings: dict[str, Any] = {
        "PYTHONPATH": str(WATCHED),
        "LIMELIGHT_TEST_NOTES": str(folder / "notes"),
        "LIMELIGHT_TEST_BAIT": BAIT,
        "LIMELIGHT_MODELS": str(folder / "models"),
        "LIMELIGHT_MODEL_CONTROL": "explicit",
    }
    with start_server(**settings) as started:
        yield started


def list_names(folder: Path) -> list[str]:
    """Names that a careless server reads as paths to the bait."""
    climbing = [
        slash.join([*[up] * depth, BAIT]) + end
        for up, slash, depth, end in itertools.product(UPS, SLASHES, DEPTHS, ENDS)
    ]
    absolute = str(folder / BAIT)
    others = [absolute, quote(absolute, safe=""), f"file:{absolute}", f"demo/../../{BAIT}", "~", ""]
    return [*climbing, *others, *(f"{name}/secret.txt" for name in others)]


def test_no_name_is_a_path(server: ServerProcess, folder: Path) -> None:
    names = list_names(folder)
    assert len(names) > 500
    with closing(HTTPConnection(urlsplit(server.url).netloc, timeout=TIMEOUT_S)) as connection:
        for number, name in enumerate(names):
            # Each name at a sixth of the places: every place has a hundred names.
            for method, place in PLACES[number % 6 :: 6]:
                connection.request(method, place.format(name), b"{}" if method == "POST" else None)
                answer = connection.getresponse()
                check_harmless(answer.status, answer.read(), name, folder)
    assert (folder / "notes").read_text() == ""


def check_harmless(status: int, body: bytes, name: str, folder: Path) -> None:
    """An answer tells nothing of what is not for clients, and no address that they did not say."""
    assert status in (200, 400, 404, 405), name
    assert SECRET not in body, name
    assert status != 200 or BAIT.encode() not in body, name
    assert status == 200 or json.loads(body).keys() == {"error"}, name
    assert folder.name in name or folder.name.encode() not in body, name


@pytest.mark.parametrize("touch", ["open({!r})", "os.listdir({!r})", "os.scandir({!r})"])
def test_the_watch_sees_who_touches_the_bait(tmp_path: Path, touch: str) -> None:
    notes = tmp_path / "notes"
    environment = {
        "PYTHONPATH": str(WATCHED),
        "LIMELIGHT_TEST_NOTES": str(notes),
        "LIMELIGHT_TEST_BAIT": BAIT,
    }
    subprocess.run(
        [sys.executable, "-c", f"import os; {touch.format(str(tmp_path / BAIT))}"],
        env=os.environ | environment,
        check=False,
        stderr=subprocess.DEVNULL,
        timeout=TIMEOUT_S,
    )
    assert BAIT in notes.read_text()
