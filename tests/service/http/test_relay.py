"""What a transport says is passed on, word for word."""

import pytest

from service.http.relay import Relay


class Heard:
    """Notes what it hears."""

    def __init__(self) -> None:
        self.calls: list[object] = []

    def eof_received(self) -> None:
        self.calls.append("eof")

    def connection_lost(self, exc: Exception | None) -> None:
        self.calls.append(exc)

    def pause_writing(self) -> None:
        self.calls.append("pause")

    def resume_writing(self) -> None:
        self.calls.append("resume")


@pytest.mark.parametrize("fault", [None, ConnectionResetError()])
def test_all_but_the_bytes_is_passed_on(fault: Exception | None) -> None:
    heard = Heard()
    relay = Relay(heard)
    relay.pause_writing()
    relay.resume_writing()
    relay.eof_received()
    relay.connection_lost(fault)
    assert heard.calls == ["pause", "resume", "eof", fault]
