"""The sockets that a server listens on, and what it says where it cannot."""

import socket
from ipaddress import ip_address

import pytest

from service.errors import StartError
from service.http.listening import listen, listen_everywhere
from service.settings import Settings

LOCALHOST = ip_address("127.0.0.1")


@pytest.fixture(autouse=True)
def clean_environment(settings: Settings) -> None:
    """No variable of ours is set."""


def test_port_0_takes_a_free_one() -> None:
    with listen(LOCALHOST, 0, "LIMELIGHT_PORT") as listener:
        host, port = listener.getsockname()
        assert host == "127.0.0.1"
        assert port > 0


@pytest.mark.parametrize("name", ["LIMELIGHT_PORT", "LIMELIGHT_METRICS_PORT"])
def test_a_port_that_is_taken_ends_the_start(settings: Settings, name: str) -> None:
    field = name.removeprefix("LIMELIGHT_").lower()
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(StartError) as caught:
            listen_everywhere(settings.model_copy(update={"port": 0, field: port}))
    assert str(caught.value) == (
        f"cannot listen on 127.0.0.1 port {port}: Address already in use; choose another with "
        f"LIMELIGHT_HOST and {name}"
    )


def test_the_metrics_cannot_have_the_port_of_the_server(settings: Settings) -> None:
    with listen(LOCALHOST, 0, "LIMELIGHT_PORT") as listener:
        port = listener.getsockname()[1]
    with pytest.raises(StartError, match=r"Address already in use; .* LIMELIGHT_METRICS_PORT$"):
        listen_everywhere(settings.model_copy(update={"port": port, "metrics_port": port}))


def test_an_address_of_another_machine_ends_the_start() -> None:
    address = ip_address("192.0.2.1")  # RFC 5737: of no machine
    with pytest.raises(StartError, match=r"^cannot listen on 192\.0\.2\.1 port 0: "):
        listen(address, 0, "LIMELIGHT_PORT")


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="this machine has no IPv6")
def test_an_ipv6_address_is_one_too() -> None:
    with listen(ip_address("::1"), 0, "LIMELIGHT_PORT") as listener:
        assert listener.getsockname()[0] == "::1"


@pytest.mark.parametrize(("metrics_port", "listeners"), [(None, 1), (0, 2)])
def test_the_metrics_have_a_listener_of_their_own_if_they_are_given_a_port(
    settings: Settings, metrics_port: int | None, listeners: int
) -> None:
    changes = {"port": 0, "metrics_port": metrics_port}
    opened = listen_everywhere(settings.model_copy(update=changes))
    try:
        ports = {listener.getsockname()[1] for listener in opened}
        assert len(ports) == len(opened) == listeners
    finally:
        for listener in opened:
            listener.close()
