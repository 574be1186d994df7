"""docs/contract.md names a test for everything that it says, and those tests exist."""

import ast
import itertools
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "contract.md").read_text()
REFERENCE = re.compile(r"`([\w/]+\.py)::(\w+)`")
BULLET = re.compile(r"^- .*(?:\n  .*)*", re.MULTILINE)
LINES = PAGE.splitlines()
ROWS = [
    row
    for row, below in itertools.pairwise(LINES)
    if row.startswith("| ") and not below.startswith("|---")
]
STATEMENTS = BULLET.findall(PAGE) + ROWS


def name_statement(text: str) -> str:
    """The first words of a statement."""
    return " ".join(re.findall(r"\w+", text)[:7])


@cache
def list_tests(path: Path) -> set[str]:
    """The names of the tests of a file, which need not be imported."""
    tree = ast.parse(path.read_text())
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in tree.body if isinstance(node, kinds)}


@pytest.mark.parametrize("statement", STATEMENTS, ids=name_statement)
def test_every_statement_names_tests_that_exist(statement: str) -> None:
    references = REFERENCE.findall(statement)
    assert references, "names no test"
    for file, name in references:
        assert name.startswith("test_")
        assert name in list_tests(ROOT / "tests" / file), f"{file} has no {name}"


def test_every_reference_stands_in_a_statement() -> None:
    """Else a change of the page's form could leave some unchecked."""
    checked = [reference for text in STATEMENTS for reference in REFERENCE.findall(text)]
    assert sorted(checked) == sorted(REFERENCE.findall(PAGE))
    assert PAGE.count(".py") == len(checked)
    assert len(STATEMENTS) > 40
