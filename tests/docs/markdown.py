"""Parts of a page of the documents: its tables, its blocks of code, and the tests that it names."""

import ast
import re
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
BLOCK: Final = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TABLE: Final = re.compile(r"(?:^\|.*\n)+", re.MULTILINE)
COMMENT: Final = re.compile(r" *<!-- *(.*?) *-->", re.DOTALL)
REFERENCE: Final = re.compile(r"`([\w/]+\.py)::(\w+)`")


def read_blocks(page: str, *languages: str) -> list[str]:
    """The blocks of code in some languages."""
    return [text for language, text in BLOCK.findall(page) if language in languages]


def read_table(page: str, *head: str) -> list[list[str]]:
    """The rows of the only table whose first columns are named so; comments are left in."""
    found = [
        rows for rows in map(split_rows, TABLE.findall(page)) if rows[0][: len(head)] == [*head]
    ]
    assert len(found) == 1, f"{len(found)} tables begin with {head}"
    return found[0][2:]


def split_rows(table: str) -> list[list[str]]:
    """The cells of a table; the second row is the line below its head."""
    return [[cell.strip() for cell in row[1:-1].split("|")] for row in table.splitlines()]


def read_section(page: str, title: str) -> str:
    """The text below a heading, up to the next one of the same level or a higher one."""
    (level,) = re.findall(rf"^(#+) {re.escape(title)}$", page, re.MULTILINE)
    after = re.split(rf"^#+ {re.escape(title)}$", page, flags=re.MULTILINE)[1]
    return re.split(rf"^#{{1,{len(level)}}} ", after, flags=re.MULTILINE)[0]


def strip_comments(text: str) -> str:
    """The text as a reader sees it."""
    return COMMENT.sub("", text)


def find_tests(text: str) -> list[str]:
    """The tests that comments name, each as its file below ``tests`` and its name."""
    return [
        f"{file}::{name}"
        for comment in COMMENT.findall(text)
        for file, name in REFERENCE.findall(comment)
    ]


def is_test(reference: str) -> bool:
    """Whether a test that a comment names is there."""
    file, _, name = reference.partition("::")
    return name.startswith("test_") and name in list_functions(ROOT / "tests" / file)


@cache
def list_functions(path: Path) -> set[str]:
    """The names of the functions of a file, which need not be imported."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in ast.parse(path.read_text()).body if isinstance(node, kinds)}
