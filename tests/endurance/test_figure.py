"""A figure knows whether it is met, and a missed one makes the command fail."""

import json
import sys
from pathlib import Path

import pytest

from benchmarks.console import finish
from benchmarks.endurance import __main__ as command
from benchmarks.endurance.crowd import find_percentile
from benchmarks.endurance.figure import Figure, find_missed
from benchmarks.endurance.stage import Stage


@pytest.mark.parametrize(
    ("figure", "is_met", "wanted"),
    [
        (Figure("told", 7), True, ""),
        (Figure("none", 0, most=0), True, "0"),
        (Figure("one", 1, most=0), False, "0"),
        (Figure("enough", 3, least=2.5), True, ">= 2.5"),
        (Figure("too few", 2, least=2.5), False, ">= 2.5"),
        (Figure("exact", 200, least=200, most=200), True, "200"),
        (Figure("between", 4, least=2, most=3), False, ">= 2 and <= 3"),
        (Figure("nothing was seen", float("nan"), "ms", most=5), False, "<= 5"),
        (Figure("never", float("inf"), "s", most=5), False, "<= 5"),
    ],
    ids=lambda each: each.name if isinstance(each, Figure) else "",
)
def test_a_figure_is_met_within_its_bounds_alone(figure: Figure, is_met: bool, wanted: str) -> None:
    assert (figure.is_met, figure.wanted) == (is_met, wanted)


def test_a_line_shows_number_unit_and_verdict() -> None:
    line = Figure("memory beyond", 21.5, "MiB", most=20).render()
    assert line.split() == ["memory", "beyond", "21.5", "MiB", "<=", "20", "MISSED"]


@pytest.mark.parametrize(("percent", "value"), [(0, 1), (50, 51), (99, 100), (100, 100)])
def test_a_percentile_is_one_of_the_values(percent: float, value: float) -> None:
    assert find_percentile(list(range(100, 0, -1)), percent) == value


def run(
    measured: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[int | str | None, list[dict[str, object]]]:
    """Exit code and figures of the command with one check, which measures a number."""

    def check(stage: Stage) -> list[Figure]:
        """Measure."""
        return [Figure("failures", measured * stage.scale, most=0)]

    monkeypatch.setattr(command, "CHECKS", {"check": check})
    file = tmp_path / "figures.json"
    monkeypatch.setattr(sys, "argv", ["x", "check", "--scale", "0.5", "--json", str(file)])
    with pytest.raises(SystemExit) as caught:
        command.main()
    return caught.value.code, json.loads(file.read_text())["check"]["figures"]


def test_the_command_fails_where_a_figure_is_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, (figure,) = run(4, tmp_path, monkeypatch)
    assert (code, figure["measured"], figure["is_met"]) == (1, 2, False)
    assert capsys.readouterr().out.splitlines()[-1] == "missed: check, failures"


def test_the_command_succeeds_where_all_are_met(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, (figure,) = run(0, tmp_path, monkeypatch)
    assert (code, figure["is_met"]) == (0, True)


def test_what_was_missed_is_named_with_its_check() -> None:
    results = {
        "burst": [Figure("seconds", 7, most=5).describe(), Figure("answers", 64).describe()],
        "slow": [Figure("requests", 3, least=5).describe()],
    }
    assert find_missed(results) == ["burst, seconds", "slow, requests"]


@pytest.mark.parametrize(("missed", "code"), [([], 0), (["slow, requests"], 1)])
def test_a_run_ends_with_what_was_missed(
    capsys: pytest.CaptureFixture[str], missed: list[str], code: int
) -> None:
    with pytest.raises(SystemExit) as caught:
        finish(missed)
    assert caught.value.code == code
    assert capsys.readouterr().out == "".join(f"missed: {line}\n" for line in missed)
