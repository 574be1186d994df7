"""docs/reliability.md names every bound with its default, and every check that was run."""

import re
from typing import Final

import pytest

from benchmarks.endurance.__main__ import CHECKS
from service.settings import PREFIX, Settings
from tests.docs.markdown import REFERENCE, ROOT, is_test, read_table

PAGE: Final = (ROOT / "docs" / "reliability.md").read_text()
SETTINGS: Final = read_table(
    (ROOT / "docs" / "settings.md").read_text(), "variable", "default", "meaning"
)
FAULTS: Final = read_table(PAGE, "fault", "expected", "tried by", "figure")
BOUNDS: Final = read_table(PAGE, "bound", "default", "when it is passed")
IS_BOUND: Final = re.compile(rf"`{PREFIX}(MAX_\w+|\w+_TIMEOUT_(S|MS))`")


def test_the_table_holds_every_bound_of_the_settings_with_its_default() -> None:
    expected = [row[:2] for row in SETTINGS if IS_BOUND.fullmatch(row[0])]
    assert [row[:2] for row in BOUNDS] == expected


@pytest.mark.parametrize("row", BOUNDS, ids=lambda row: row[0].strip("`"))
def test_what_happens_at_a_bound_agrees_with_the_meaning_of_its_setting(row: list[str]) -> None:
    """A status that the page of the settings names is the status of this page too."""
    (meaning,) = [meaning for name, _, meaning in SETTINGS if name == row[0]]
    named = set(re.findall(r"\b[45]\d\d\b", meaning))
    assert named <= set(re.findall(r"\b[45]\d\d\b", row[2]))
    assert len(row[2]) > 2


def test_every_setting_that_is_named_is_one() -> None:
    named = set(re.findall(rf"\b{PREFIX}\w+", PAGE))
    assert named <= {PREFIX + name.upper() for name in Settings.model_fields}


@pytest.mark.parametrize("row", FAULTS, ids=lambda row: row[0])
def test_a_fault_names_checks_and_tests_that_are_there(row: list[str]) -> None:
    tests = [f"{file}::{name}" for file, name in REFERENCE.findall(row[2])]
    checks = set(re.findall(r"`(\w+)`", row[2]))
    assert tests or checks
    assert checks <= set(CHECKS)
    assert [test for test in tests if not is_test(test)] == []
    assert all(row)


def test_every_check_that_the_page_reports_can_be_run() -> None:
    headings = re.findall(r"^### `(\w+)`", PAGE, re.MULTILINE)
    assert headings
    assert set(headings) <= set(CHECKS)
    assert len(headings) == len(set(headings))


def read_number(text: str) -> float:
    """The number that a cell begins with."""
    return float(text.split(maxsplit=1)[0].replace(",", ""))


def test_every_measured_figure_is_within_what_is_wanted() -> None:
    """A check that missed has no table here."""
    rows = re.findall(r"^\| [^|]+ \| (-?\d[^|]*) \| ([<>]= [^|]+|\d+) \|$", PAGE, re.MULTILINE)
    assert len(rows) > 10
    for measured, wanted in rows:
        number, limit = read_number(measured), read_number(wanted.split("= ")[-1])
        signs = {">": number >= limit, "<": number <= limit}
        assert signs.get(wanted[0], number == limit), (measured, wanted)
