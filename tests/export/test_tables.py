"""Tables for people, on a terminal and in a file."""

import pytest

from export.checkpoints.inspection import LayerReport
from export.tables import make_printable, print_errors, print_layers
from export.verify import Report


def make_report(error: float) -> Report:
    return {
        "model": {
            "none": {"output": error, "attention_weights": error / 2},
            "mask": {"output": 2e-7, "attention_weights": 3e-7},
        },
        "fused": {"none": {"output": 4e-7}},
    }


def read_rows(capsys: pytest.CaptureFixture[str]) -> list[list[str]]:
    out, _ = capsys.readouterr()
    lines = [line.split() for line in out.splitlines()]
    return [line for line in lines if line and not line[0].startswith("─")]


def test_errors_are_the_largest_of_all_models_and_outputs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_errors([make_report(1e-7), make_report(5e-6)])
    assert read_rows(capsys) == [
        ["hiding", "model", "fused"],
        ["none", "5.0e-06", "4.0e-07"],
        ["mask", "3.0e-07", "-"],
    ]


def test_layers_have_a_row_each_however_long_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    reason = "tensor 'a' is missing; " + "save it " * 60
    yes = LayerReport(0, "", "Packed", 768, 12, 768, 768, 2_362_368, "bfloat16", True, "")
    no = LayerReport(11, "a.11", "BERT", None, None, None, None, 5, "float32", False, reason)
    print_layers([yes, no])
    head, first, second = read_rows(capsys)
    assert head[:4] == ["#", "layer", "family", "d_model"]
    assert first[:4] == ["0", "(the", "file", "itself)"]
    assert first[4:] == ["Packed", "768", "12", "2,362,368", "bfloat16", "yes"]
    assert " ".join(second) == f"11 a.11 BERT - - 5 float32 no: {reason.strip()}"


def test_names_in_a_file_cannot_write_over_the_terminal() -> None:
    assert (
        make_printable("a\x1b[2Jb\n") == "a\N{REPLACEMENT CHARACTER}[2Jb\N{REPLACEMENT CHARACTER}"
    )
