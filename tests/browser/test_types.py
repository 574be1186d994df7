"""The types that the modules of the page declare in comments are right."""

import shutil
import subprocess
from pathlib import Path

import pytest

TYPESCRIPT = "typescript@7.0.2"
UNREACHABLE = ("ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ETIMEDOUT", "E404", "network")


@pytest.mark.skipif(shutil.which("npx") is None, reason="types of the page: install node and npm")
def test_tsc_finds_no_fault() -> None:
    command = ["npx", "--yes", "--package", TYPESCRIPT, "tsc", "--project", "jsconfig.json"]
    done = subprocess.run(
        command,
        cwd=Path(__file__).parent,
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
    )
    if "npm error" in done.stderr and any(word in done.stderr for word in UNREACHABLE):
        pytest.skip("types of the page: npm's registry does not answer")
    assert done.returncode == 0, done.stdout + done.stderr
