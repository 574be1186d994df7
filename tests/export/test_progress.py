"""Progress: for people at a terminal only."""

import io

import pytest

from export.progress import count_steps, show_progress


class Terminal(io.StringIO):
    """A stderr that says it is a terminal, or not."""

    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal


def test_a_terminal_sees_what_was_done_last(monkeypatch: pytest.MonkeyPatch) -> None:
    stderr = Terminal(True)
    monkeypatch.setattr("sys.stderr", stderr)
    monkeypatch.setenv("TERM", "xterm")
    with show_progress(count_steps()) as on_step:
        for number in range(count_steps()):
            on_step(f"step {number}")
    assert f"step {count_steps() - 1}" in stderr.getvalue()


def test_a_file_sees_nothing_even_where_colour_is_forced(monkeypatch: pytest.MonkeyPatch) -> None:
    stderr = Terminal(False)
    monkeypatch.setattr("sys.stderr", stderr)
    monkeypatch.setenv("FORCE_COLOR", "1")
    with show_progress(1) as on_step:
        on_step("step")
    assert stderr.getvalue() == ""


def test_layers_of_one_size_are_traced_once() -> None:
    assert count_steps(layers=12, templates=2) == 5 * 12 + 5 * 2
