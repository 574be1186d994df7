"""The command limelight-serve: what it prints and how it ends before it serves."""

import importlib.metadata
import socket
import sys
from ipaddress import ip_address

import pytest

from service import __main__ as command
from service.__main__ import listen, main
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


def test_port_0_takes_a_free_one(settings: Settings) -> None:
    with listen(settings.model_copy(update={"port": 0})) as listener:
        host, port = listener.getsockname()
        assert host == "127.0.0.1"
        assert port > 0


def test_a_port_that_is_taken_ends_the_start(settings: Settings) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(StartError) as caught:
            listen(settings.model_copy(update={"port": port}))
    assert str(caught.value) == (
        f"cannot listen on 127.0.0.1 port {port}: Address already in use; choose another with "
        "LIMELIGHT_HOST and LIMELIGHT_PORT"
    )


def test_an_address_of_another_machine_ends_the_start(settings: Settings) -> None:
    changes = {"host": ip_address("192.0.2.1"), "port": 0}  # RFC 5737: of no machine
    with pytest.raises(StartError, match=r"^cannot listen on 192\.0\.2\.1 port 0: "):
        listen(settings.model_copy(update=changes))


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="this machine has no IPv6")
def test_an_ipv6_address_is_one_too(settings: Settings) -> None:
    with listen(settings.model_copy(update={"host": ip_address("::1"), "port": 0})) as listener:
        assert listener.getsockname()[0] == "::1"
