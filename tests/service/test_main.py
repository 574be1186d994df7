"""The command limelight-serve: what it prints and how it ends before it serves."""

import importlib.metadata
import sys

import pytest

from service import __main__ as command
from service.__main__ import main
from service.errors import StartError
from service.settings import Settings


@pytest.fixture(autouse=True)
def clean_environment(settings: Settings) -> None:
    """No variable of ours is set."""


def call(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> object:
    """The code that the command exits with."""
    monkeypatch.setattr(sys, "argv", ["limelight-serve", *arguments])
    with pytest.raises(SystemExit) as caught:
        main()
    return caught.value.code


def test_its_version_is_that_of_the_distribution(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["limelight-serve", "--version"])
    main()
    assert capsys.readouterr().out == f"{importlib.metadata.version('limelight')}\n"


def test_its_help_lists_every_setting(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, "--help") == 0
    shown = capsys.readouterr().out
    for name in Settings.model_fields:
        assert f"--{name.replace('_', '-')}" in shown


def test_a_setting_that_does_not_fit_ends_it_with_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert call(monkeypatch, "--port", "65536") == (
        "limelight-serve: LIMELIGHT_PORT is '65536': input should be less than or equal to 65535"
    )


def test_a_failed_start_ends_it_with_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: Settings) -> None:
        raise StartError("weights.bin is missing")

    monkeypatch.setattr(command, "serve", fail)
    assert call(monkeypatch) == "limelight-serve: weights.bin is missing"


def test_the_settings_of_the_command_line_are_served(monkeypatch: pytest.MonkeyPatch) -> None:
    served: list[Settings] = []
    monkeypatch.setattr(command, "serve", served.append)
    monkeypatch.setattr(sys, "argv", ["limelight-serve", "--port", "0", "--demo"])
    main()
    assert (served[0].port, served[0].demo) == (0, True)
