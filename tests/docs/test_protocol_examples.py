"""The examples of docs/protocol.md run as they stand, against a server of the demo."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import pytest

from tests.docs.markdown import BLOCK, ROOT, read_blocks, read_section

PAGE: Final = (ROOT / "docs" / "protocol.md").read_text()
CLIENTS: Final = read_section(PAGE, "Clients")
ADDRESS: Final = "127.0.0.1:8000"
TIMEOUT_S: Final = 120
# What an example needs beside the tests' own environment, by a word of its text.
NEEDS: Final[dict[str, tuple[Callable[[str], object], str]]] = {
    "kserve": (find_spec, "kserve: make test-env"),
    "tritonclient": (find_spec, "clients: make test-env"),
    "curl": (shutil.which, "curl: install it"),
    "node": (shutil.which, "node: install it"),
}


def cases(language: str, *needs: str) -> list[Any]:
    """The examples in a language, named by their first words.

    Args:
        language: of the blocks.
        *needs: what all of them need, beside what their text names.
    """
    return [
        pytest.param(text, id=re.sub(r"\W+", "-", text[:60]), marks=list_marks(needs, text))
        for text in read_blocks(CLIENTS, language)
    ]


def list_marks(needs: tuple[str, ...], text: str) -> list[pytest.MarkDecorator]:
    """The reasons to leave an example out here."""
    return [
        pytest.mark.skipif(not find(name), reason=reason)
        for name, (find, reason) in NEEDS.items()
        if name in needs or name in text
    ]


def run(command: list[str], directory: Path) -> str:
    """What an example prints."""
    done = subprocess.run(
        command, cwd=directory, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_block_is_of_a_kind_that_is_tested() -> None:
    assert {language for language, _ in BLOCK.findall(CLIENTS)} == {
        "sh", "json", "python", "js", "console",
    }  # fmt: skip
    assert {language for language, _ in BLOCK.findall(PAGE)} - {"hex", "json"} <= {
        language for language, _ in BLOCK.findall(CLIENTS)
    }


@pytest.mark.parametrize("text", cases("python"))
def test_python_runs(text: str, server_url: str, tmp_path: Path) -> None:
    host = server_url.removeprefix("http://")
    run([sys.executable, "-c", text.replace(ADDRESS, host)], tmp_path)


@pytest.mark.parametrize("text", cases("js", "node"))
def test_javascript_runs(text: str, server_url: str, tmp_path: Path) -> None:
    script = tmp_path / "example.mjs"
    script.write_text(text.replace(f"http://{ADDRESS}", server_url))
    assert run(["node", script.name], tmp_path).startswith("[ 1, 3, 2, 2 ] Float32Array(12)")


@pytest.mark.parametrize("text", cases("sh"))
def test_curl_prints_json_and_no_error(text: str, server_url: str, tmp_path: Path) -> None:
    printed = run(["/bin/sh", "-ec", text.replace(f"http://{ADDRESS}", server_url)], tmp_path)
    decoder, rest, values = json.JSONDecoder(), printed, []
    while rest:
        value, end = decoder.raw_decode(rest)
        values.append(value)
        rest = rest[end:].lstrip()
    assert len(values) == text.count("curl ")
    assert not [value for value in values if "error" in value]


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl: install it")
def test_curl_answers_what_the_page_shows(server_url: str, tmp_path: Path) -> None:
    text, shown = read_blocks(CLIENTS, "sh")[0], json.loads(read_blocks(CLIENTS, "json")[0])
    printed = run(["/bin/sh", "-ec", text.replace(f"http://{ADDRESS}", server_url)], tmp_path)
    answer = json.loads(printed)
    assert answer["outputs"][0].keys() == shown["outputs"][0].keys()
    for got, expected in zip(answer["outputs"], shown["outputs"], strict=True):
        assert got.pop("data") == pytest.approx(expected.pop("data"), abs=1e-6)
    assert answer == shown


def test_every_request_that_the_page_shows_is_answered(client: Any) -> None:
    bodies = [json.loads(text) for text in read_blocks(PAGE, "json")]
    requests = [body for body in bodies if isinstance(body, dict) and "inputs" in body]
    assert requests
    for request in requests:
        response = client.post("/v2/models/demo/infer", json=request)
        assert response.status_code == 200, response.text
        assert [out["name"] for out in response.json()["outputs"]] == [
            out["name"] for out in request["outputs"]
        ]


def test_the_error_that_the_page_shows_is_the_servers(client: Any) -> None:
    (shown,) = [json.loads(text) for text in read_blocks(PAGE, "json") if '"error"' in text]
    entry = {"name": "query", "shape": [1, 2, 5], "datatype": "FP32", "data": [0] * 10}
    assert client.post("/v2/models/demo/infer", json={"inputs": [entry]}).json() == shown
