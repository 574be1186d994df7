"""Rules about files that no linter knows."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("model", "export", "service", "tests", "benchmarks", "examples", "deploy")
PYTHON_FILES = sorted(
    path.relative_to(ROOT)
    for folder in FOLDERS
    for path in (ROOT / folder).rglob("*.py")
    if "__pycache__" not in path.parts
)
MOST_LINES = 300


@pytest.mark.parametrize("path", PYTHON_FILES, ids=str)
def test_a_file_holds_one_noun_and_so_is_short(path: Path) -> None:
    lines = (ROOT / path).read_text(encoding="utf-8").count("\n")
    assert lines <= MOST_LINES, f"{path} has {lines} lines: split it where a second noun begins"


def test_no_folder_of_tests_is_a_package() -> None:
    """A ``tests/model/__init__.py`` would hide the real ``model``."""
    assert not [path for path in PYTHON_FILES if path.match("tests/**/__init__.py")]


@pytest.mark.parametrize("package", ["model", "export", "service"])
def test_every_package_says_what_it_is_for(package: str) -> None:
    for path in (ROOT / package).rglob("__init__.py"):
        assert path.read_text(encoding="utf-8").startswith('"""'), path
