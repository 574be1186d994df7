"""`make` alone tells what `make` can do."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MAKEFILE = (ROOT / "Makefile").read_text()
found = re.search(r"^\.PHONY: (.*)$", MAKEFILE, re.MULTILINE)
COMMANDS = found[1].split() if found else []


def printed_by_make() -> str:
    """What ``make`` prints when it is given no command."""
    make = shutil.which("make")
    if make is None:
        pytest.skip("make is not installed")
    environment = {k: v for k, v in os.environ.items() if k not in {"MAKEFLAGS", "MAKELEVEL"}}
    command = [make, "--no-print-directory"]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, check=True, capture_output=True, text=True
    )
    return done.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_make_alone_lists_every_command(command: str) -> None:
    assert re.search(rf"^  {command} +\w", printed_by_make(), re.MULTILINE)


def test_the_commands_that_the_documents_name_exist() -> None:
    documents = (ROOT / "README.md").read_text() + (ROOT / "CONTRIBUTING.md").read_text()
    named = set(re.findall(r"^(?:[A-Z_]+=\S+ )?make ([a-z-]+)", documents, re.MULTILINE))
    named |= set(re.findall(r"`make ([a-z-]+)", documents))
    assert {"serve", "test"} <= named <= set(COMMANDS)


def test_every_command_is_phony() -> None:
    documented = re.findall(r"^([a-z-]+):.*## ", MAKEFILE, re.MULTILINE)
    assert sorted(documented) == sorted(COMMANDS)
