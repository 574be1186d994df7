"""The command: what is left out, what is missed, and what is written down."""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.endurance.figure import Figure
from benchmarks.gpu import __main__ as command
from benchmarks.gpu.note import Note
from benchmarks.gpu.stage import Stage
from export.errors import ExportError

Run = Callable[..., tuple[Any, dict[str, Any]]]


@pytest.fixture(name="run")
def make_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the command with one check; its exit code, and what it wrote."""

    def run(*found: Figure | Note, name: str = "check") -> tuple[Any, dict[str, Any]]:
        def check(_: Stage) -> Iterator[Figure | Note]:
            """Measure."""
            yield from found
            if not found:
                raise RuntimeError("CUDA failure 700")

        return run_check(check, name)

    def run_check(check: Any, name: str) -> tuple[Any, dict[str, Any]]:
        file = tmp_path / "figures.json"
        monkeypatch.setattr(command, "CHECKS", {name: check})
        monkeypatch.setattr(command, "find_absent", lambda _: [])
        monkeypatch.setattr(sys, "argv", ["x", "--provider", "cpu", "--json", str(file)])
        with pytest.raises(SystemExit) as caught:
            command.main()
        return caught.value.code, json.loads(file.read_text())["checks"]

    return run


def test_bounds_that_are_met_end_well_and_are_written_down(run: Run) -> None:
    code, checks = run(Figure("error", 1e-4, most=1e-3), Note("kernel", "flash"))
    assert code == 0
    assert [each["is_met"] for each in checks["check"]] == [True, True]
    assert checks["check"][1]["text"] == "flash"
    assert checks["duration"][0]["most"] == 300


def test_a_bound_that_is_missed_is_named_and_ends_with_one(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _ = run(Figure("error", float("nan"), most=1e-3))
    assert code == 1
    assert capsys.readouterr().out.splitlines()[-1] == "missed: check, error"


def test_a_check_that_fails_has_missed_and_says_why(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _ = run()
    assert code == 1
    out = capsys.readouterr().out
    assert "  RuntimeError: CUDA failure 700\n" in out
    assert out.endswith("missed: check, check ran to its end\n")


@pytest.mark.parametrize("name", command.NEED_A_GPU)
def test_what_needs_a_gpu_is_left_out_on_the_cpu_and_says_so(name: str, run: Run) -> None:
    code, checks = run(name=name)
    assert code == 0
    assert checks[name] == [{"name": name, "text": "left out: needs a GPU", "is_met": True}]


def test_a_provider_that_is_not_there_ends_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def check(_: Stage) -> Iterator[Figure]:
        """Measure."""
        raise ExportError("onnxruntime was asked for cuda, but runs on CPUExecutionProvider")
        yield

    monkeypatch.setattr(command, "CHECKS", {"parity": check})
    monkeypatch.setattr(command, "find_absent", lambda _: [])
    monkeypatch.setattr(sys, "argv", ["x"])
    with pytest.raises(SystemExit) as caught:
        command.main()
    assert caught.value.code == (
        "python -m benchmarks.gpu: onnxruntime was asked for cuda, but runs on CPUExecutionProvider"
    )


def test_models_that_cannot_be_made_here_are_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SystemExit) as caught:
        command.export_absent(tmp_path / "file" / "models")
    assert caught.value.code == (
        "the models cannot be exported here; make them where the extra 'export' is, with python -m "
        "benchmarks.gpu.layers FOLDER, and say --models FOLDER"
    )


def test_a_check_that_does_not_exist_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["x", "other"])
    with pytest.raises(SystemExit) as caught:
        command.main()
    assert caught.value.code == 2
    assert "no check is called other; there are parity, blind, kernels" in capsys.readouterr().err
