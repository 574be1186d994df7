"""Published faults of the libraries that answer for us: each is mended in what is installed.

`pip-audit` asks for all that are known on the day; these are tried, and need no network.
"""

import ast
import http.client
import os
import re
import time
import tomllib
from importlib import metadata
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import httpx
import pytest
from packaging.version import Version

ROOT: Final = Path(__file__).parents[2]
SOURCES: Final = sorted((ROOT / "service").rglob("*.py"))
PATIENCE_S: Final = 20
# Where a fault was mended, and which.
MENDED: Final = {
    "h11": ("0.16.0", "CVE-2025-43859: lenient chunked bodies"),
    "orjson": ("3.11.6", "CVE-2025-67221: deep nesting ends the process"),
    "starlette": ("1.0.1", "CVE-2026-48710: Host moves request.url; CVE-2025-62727: Range"),
}


@pytest.mark.parametrize("name", MENDED)
def test_what_is_installed_has_the_fault_mended(name: str) -> None:
    try:
        installed = metadata.version(name)
    except metadata.PackageNotFoundError:
        pytest.skip(f"{name} is not installed, and so has no fault")
    assert Version(installed) >= Version(MENDED[name][0]), MENDED[name][1]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_source_of_the_server_reads_forms_or_templates(path: Path) -> None:
    """python-multipart CVE-2024-24762, CVE-2024-53981, CVE-2026-24486: it would be asked for them.

    Starlette loads it where it is installed, and uses it for `Request.form` alone.
    """
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Call(func=ast.Attribute(attr="form")):
                pytest.fail("reads a form")
            case ast.ImportFrom(module=str(module), names=names) if module.startswith(
                ("fastapi", "starlette")
            ):
                assert "templat" not in module
                assert not {name.name for name in names} & {"Form", "File", "UploadFile"}
            case _:
                pass


def test_the_server_depends_on_nothing_that_reads_them() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = {re.split(r"[^\w-]", line)[0].lower() for line in project["dependencies"]}
    assert {"fastapi", "uvicorn"} <= names
    assert not names & {"python-multipart", "multipart", "jinja2", "itsdangerous", "pyyaml"}


@pytest.mark.parametrize("path", ["/page/style.css", "/docs/assets/swagger-ui-bundle.js"])
@pytest.mark.parametrize(
    "ranges",
    [
        ",".join(["0-"] * 15_000),
        ",".join(f"{2 * n}-{2 * n}" for n in range(5_000)),
        ",".join(f"{n}-{n + 7}" for n in range(5_000)),
        ",".join(["-1"] * 15_000),
    ],
    ids=["whole", "apart", "overlapping", "from-the-end"],
)
def test_many_ranges_of_a_file_cost_little(client: httpx.Client, path: str, ranges: str) -> None:
    """CVE-2025-62727: merging them took the square of their number."""
    whole = client.get(path).content
    begun = time.monotonic()
    answer = client.get(path, headers={"Range": f"bytes={ranges}"})
    assert time.monotonic() - begun < PATIENCE_S
    assert (answer.status_code, answer.content) == (200, whole)


@pytest.mark.parametrize("host", ["x/v2/health/live?", "x/y", "x#", "user@x", "[::1"])
def test_a_host_moves_no_request(server_url: str, host: str) -> None:
    """CVE-2026-48710: whatever is read from `request.url` is partly what the client says."""
    connection = http.client.HTTPConnection(urlsplit(server_url).netloc, timeout=PATIENCE_S)
    connection.putrequest("GET", "/nothing", skip_host=True)
    connection.putheader("Host", host)
    if key := os.environ.get("LIMELIGHT_TEST_KEY"):
        connection.putheader("Authorization", f"Bearer {key}")
    connection.endheaders()
    answer = connection.getresponse()
    assert answer.status == 404
    assert answer.read() == b'{"error":"nothing is served at /nothing"}'
    connection.close()
