"""The files that say what is installed agree with one another."""

import re
import tomllib
from itertools import chain
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PYPROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT: dict[str, Any] = PYPROJECT["project"]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
PIN = re.compile(r"([a-z0-9-]+)==[0-9][a-z0-9.]*")
CONSTRAINTS = [
    line
    for line in (ROOT / "constraints.txt").read_text().splitlines()
    if line and not line.startswith("#")
]


def named_packages() -> set[str]:
    """Every package that pyproject.toml names, in the spelling of an index."""
    lines = [*PROJECT["dependencies"], *chain(*PROJECT["optional-dependencies"].values())]
    names = {re.split(r"[^A-Za-z0-9_.-]", line)[0] for line in lines} - {PROJECT["name"]}
    return {re.sub(r"[-_.]+", "-", name).lower() for name in names}


def test_a_constraint_is_a_name_and_a_version_and_never_an_address() -> None:
    assert [line for line in CONSTRAINTS if not PIN.fullmatch(line)] == []


def test_constraints_hold_each_package_once() -> None:
    names = [line.split("==")[0] for line in CONSTRAINTS]
    assert names == sorted(set(names))


def test_every_package_that_pyproject_names_has_its_version_pinned() -> None:
    assert named_packages() - {line.split("==")[0] for line in CONSTRAINTS} == set()


def test_dockerfile_and_pyproject_agree_on_python() -> None:
    found = re.search(r"^ARG PYTHON=(\S+)$", DOCKERFILE, re.MULTILINE)
    assert found
    assert f"Programming Language :: Python :: {found[1]}" in PROJECT["classifiers"]


def test_the_oldest_python_is_the_same_everywhere() -> None:
    oldest = PROJECT["requires-python"].removeprefix(">=")
    minor = oldest.removeprefix("3.")
    versions = [c for c in PROJECT["classifiers"] if c.startswith("Programming Language")]
    assert versions[0] == f"Programming Language :: Python :: {oldest}"
    assert PYPROJECT["tool"]["ruff"]["target-version"] == f"py3{minor}"
    assert f"sys.version_info < (3, {minor})" in (ROOT / "Makefile").read_text()


def test_image_and_changelog_name_the_version() -> None:
    assert f'image.version="{PROJECT["version"]}"' in DOCKERFILE
    assert f"## [{PROJECT['version']}]" in (ROOT / "CHANGELOG.md").read_text()


def test_the_server_needs_neither_torch_nor_onnx() -> None:
    extras = PROJECT["optional-dependencies"]
    for line in [*PROJECT["dependencies"], *extras["cpu"], *extras["gpu"], *extras["client"]]:
        assert not re.match(r"(torch|onnx|onnxscript)\b(?!runtime)", line)
