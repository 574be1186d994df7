"""The process may open as many files as its connections take, or says why not."""

import resource

import pytest

from service.errors import StartError
from service.http.descriptors import allow_connections

INFINITE = resource.RLIM_INFINITY
OTHERS = 64 + 128  # connections that wait for their refusal, and files that are no connections


@pytest.fixture(name="limits")
def replace_limits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Soft and hard limit of a system of the test's own."""
    limits = [1024, 4096]

    def change(_: int, new: tuple[int, int]) -> None:
        limits[:] = new

    monkeypatch.setattr(resource, "getrlimit", lambda _: tuple(limits))
    monkeypatch.setattr(resource, "setrlimit", change)
    return limits


@pytest.mark.parametrize("soft", [1000 + OTHERS, 100_000, INFINITE])
def test_a_limit_that_is_enough_stays(limits: list[int], soft: int) -> None:
    limits[:] = soft, INFINITE
    allow_connections(1000)
    assert limits == [soft, INFINITE]


@pytest.mark.parametrize("hard", [1000 + OTHERS, 100_000, INFINITE])
def test_a_limit_that_is_too_low_is_raised(limits: list[int], hard: int) -> None:
    limits[:] = 999 + OTHERS, hard
    allow_connections(1000)
    assert limits == [1000 + OTHERS, hard]


def test_a_limit_that_cannot_be_raised_ends_the_start(limits: list[int]) -> None:
    with pytest.raises(StartError) as error:
        allow_connections(5000)
    assert str(error.value) == (
        "LIMELIGHT_MAX_CONNECTIONS is 5000, which takes 5192 open files, but the system allows "
        "this process 4096: raise that limit (ulimit -n, systemd's LimitNOFILE, docker's --ulimit "
        "nofile), or set LIMELIGHT_MAX_CONNECTIONS to at most 3904"
    )
    assert limits == [1024, 4096]


def test_a_limit_below_what_else_is_needed_is_not_a_number_of_connections(
    limits: list[int],
) -> None:
    limits[:] = 64, 128
    with pytest.raises(StartError, match=r"docker's --ulimit nofile\)$"):
        allow_connections(1)
